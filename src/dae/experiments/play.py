"""`dae play`: how well a trained agent plays, and what it thinks while it does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs import make_vec_env
from dae.errors import UserError
from dae.experiments.film import CannotRecord, record_episode
from dae.experiments.loading import load_run
from dae.rules import COUNT, ruled
from dae.runs.settings import SEED
from dae.terminal.options import optional_words
from dae.text import plural

_MOST_STEPS = 1_000_000  # of each environment


@dataclass(frozen=True)
class PlayConfig:
    """Measure a trained agent over many episodes, and record one.

    dae play runs/CartPole-v1/dae-baseline/seed-0
    dae play runs/CartPole-v1/dae-baseline/seed-0 --episodes 500 --greedy
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    episodes: int = ruled(100, COUNT)
    """Episodes to play."""
    greedy: bool = False
    """Take the most probable action instead of drawing one."""
    seed: int = ruled(1_000, SEED)
    """Seed of the environments."""
    film: Literal["gif", "mp4", "none"] = "gif"
    """What to record an episode as."""
    out: Annotated[Path | None, optional_words("FOLDER")] = None
    """Folder for the film; by default `play` in the run's folder."""


def play(config: PlayConfig) -> int:
    """Print mean ± standard error of the scores, and write a film."""
    run = load_run(config.run)
    if config.out is None:
        run.folder.require_plain()
    env = make_vec_env(run.config.env, min(config.episodes, 64), config.seed, **run.config.env_options)
    player = _Player(run.model, env)
    scores, lengths = evaluate_policy(
        player,  # type: ignore[arg-type]
        env,
        config.episodes,
        deterministic=config.greedy,
        return_episode_rewards=True,
    )
    assert isinstance(scores, list)
    how = "greedy" if config.greedy else "stochastic"
    error = f" ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.2f} (mean ± standard error)" if len(scores) > 1 else ""
    frames = run.model.num_timesteps * run.config.family.frames_per_step
    print(
        f"{run.config.env}, {plural(frames, 'frame')} of training, {plural(len(scores), f'{how} episode')}: "
        f"score {np.mean(scores):.2f}{error}, length {np.mean(lengths):.0f}"
    )
    if config.film != "none":
        path = (config.out or config.run / "play") / f"episode-{how}-seed-{config.seed}.{config.film}"
        try:
            score = record_episode(run.model, run.config, path, seed=config.seed, greedy=config.greedy)
            print(f"an episode that scored {score:g}: {path}")
        except CannotRecord as reason:
            print(f"no recording: {reason}")
    return 0


class _Player:
    """An agent that asks its environments which actions they allow."""

    def __init__(self, model: PPO, env: VecEnv) -> None:
        self._model, self._read_masks = model, model.mask_reader(env)
        self._steps = 0

    def predict(self, observation: Any, **options: Any) -> tuple[Any, Any]:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise UserError(
                f"the episodes asked for have not ended after {_MOST_STEPS:,} steps: ask for fewer --episodes"
            )
        return self._model.predict(observation, action_masks=self._read_masks(), **options)
