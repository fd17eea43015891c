"""The finishing phase: the trained policy plays, without learning, until completed episodes hold all frames."""

import numpy as np
from stable_baselines3.common.vec_env import unwrap_vec_normalize

from dae.agent import PPO, parallel
from dae.agent.finite import require_finite
from dae.experiments.config import TrainConfig
from dae.experiments.training.callback import check_together
from dae.experiments.training.recorder import Recorder
from dae.terminal.signals import StopSignals
from dae.text import plural


def play_on(config: TrainConfig, agent: PPO, recorder: Recorder, signals: StopSignals) -> int:
    """Play until completed episodes hold as many frames as the run has, but for at most as many frames again.

    Return the frames that were played.
    """
    env, obs, frames = agent.env, agent._last_obs, recorder.frames
    assert env is not None
    trained, furthest = frames, frames + config.frames
    per_step = env.num_envs * parallel.size() * config.family.frames_per_step
    agent.policy.set_training_mode(False)
    normalizer = unwrap_vec_normalize(env)
    if normalizer is not None:
        normalizer.training = False  # what the agent has learned belongs to the statistics that it has learned with
    read_masks = agent.mask_reader(env)
    steps_between_talks = 1 if parallel.size() == 1 else config.steps
    completed = parallel.broadcast(recorder.completed_frames)
    while completed < config.frames and frames < furthest:
        check_together(signals)
        for _ in range(steps_between_talks):
            _, acted, _ = agent.act(obs, read_masks())  # type: ignore[arg-type]
            obs, rewards, dones, infos = env.step(agent.within_bounds(acted.actions.cpu().numpy()))  # type: ignore[assignment]
            frames += per_step
            require_finite(obs, rewards, frames // per_step)
            ended = np.flatnonzero(dones)
            agent._update_info_buffer([infos[i] for i in ended], dones[ended])  # the last 100 episodes are these, too
            recorder.record(ended, infos, frames)
        recorder.write_episodes()
        completed = parallel.broadcast(recorder.completed_frames)
        recorder.show_finishing(completed)
    recorder.flush()
    if completed < config.frames:
        recorder.say(
            f"the finishing phase ended after {plural(frames - trained, 'more frame')}, its limit: "
            f"completed episodes hold {completed:,} of {plural(config.frames, 'frame')}"
        )
    return frames - trained
