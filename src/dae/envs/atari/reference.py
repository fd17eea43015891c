"""Atari as Stable-Baselines3 makes it, one environment after the other: what our games are compared with."""

from functools import partial
from typing import Any

import ale_py
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecFrameStack, VecTransposeImage
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from dae.envs.atari.game import FRAME_SKIP, GameSettings
from dae.envs.atari.vec_env import AtariVecEnv
from dae.envs.separate import make_separate


def make_emulator(
    env_id: str,
    *,
    max_episode_frames: int = GameSettings.max_episode_frames,
    full_action_space: bool = False,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """Make one game without preprocessing, for `AtariWrapper`: every frame, no sticky actions."""
    gym.register_envs(ale_py)
    return gym.make(
        env_id,
        frameskip=1,
        repeat_action_probability=0.0,
        max_num_frames_per_episode=max_episode_frames,
        full_action_space=full_action_space,
        render_mode=render_mode,
    )


def make_reference(
    env_id: str,
    n_envs: int,
    seed: int | None,
    *,
    sticky_action_prob: float = 0.0,
    noop_max: int = GameSettings.noop_max,
    terminal_on_life_loss: bool = True,
    clip_reward: bool = True,
    **options: Any,
) -> VecEnv:
    """Make games as `make_atari_env` does, with stacked frames, the channels first."""
    wrapper_options = {
        "noop_max": noop_max,
        "terminal_on_life_loss": terminal_on_life_loss,
        "clip_reward": clip_reward,
        "action_repeat_probability": sticky_action_prob,
    }
    games = make_separate(
        partial(make_emulator, env_id, **options),
        env_id,
        n_envs,
        seed,
        wrapper_class=AtariWrapper,
        wrapper_kwargs=wrapper_options,
    )
    return _LengthsInSteps(VecTransposeImage(VecFrameStack(games, AtariVecEnv.n_stack)))


class _LengthsInSteps(VecEnvWrapper):
    """Lengths of episodes in steps of the agent; the Monitor is within `AtariWrapper`, and counts frames."""

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if "episode" in info:
                info["episode"] = info["episode"] | {"l": -(-info["episode"]["l"] // FRAME_SKIP)}
        return observations, rewards, dones, infos
