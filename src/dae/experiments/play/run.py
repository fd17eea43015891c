"""`dae play`: find the run, measure its agent, record an episode."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs import make_vec_env
from dae.errors import UserError
from dae.experiments.film import CannotRecord, record_episode
from dae.experiments.loading import Run, load_run
from dae.experiments.play.config import PlayConfig
from dae.runs import RunFolder, find_runs
from dae.runs.listing import ListingConfig, list_runs
from dae.terminal.progress import WorkProgress
from dae.terminal.text import plural

_MOST_STEPS = 1_000_000  # of each environment


def play(config: PlayConfig) -> int:
    """Print mean ± standard error of the scores, and write a film."""
    run = load_run(_find_run(config.run))
    if config.out is None:
        run.folder.require_plain()
    model = run.model
    scores, lengths = _measure(run, config)
    how = "greedy" if config.greedy else "stochastic"
    error = f" ± {np.std(scores, ddof=1) / np.sqrt(len(scores)):.2f} (mean ± standard error)" if len(scores) > 1 else ""
    print(
        f"{run.config.env}, {plural(model.num_timesteps * run.config.family.frames_per_step, 'frame')} of training, "
        f"{plural(len(scores), f'{how} episode')}: score {np.mean(scores):.2f}{error}, "
        f"length {plural(round(np.mean(lengths)), 'step')}",
        flush=True,
    )
    if config.film != "none":
        path = (config.out or run.folder.path / "play") / f"episode-{how}-seed-{config.seed}.{config.film}"
        try:
            film = record_episode(model, run.config, path, seed=config.seed, greedy=config.greedy)
            print(f"an episode ({film}): {film.path}")
        except CannotRecord as reason:
            print(f"no recording: {reason}")
    return 0


def _find_run(path: Path) -> Path:
    """Return the folder of the run to play: the one named, or the only one below it."""
    if RunFolder(path).exists:
        return path
    found = [folder.path for folder in find_runs([path])]
    if len(found) > 1:
        list_runs(ListingConfig(path))
        raise UserError(f"{path} holds {len(found)} runs: name one of them, such as dae play {found[0]}")
    if found and found[0] != path:
        print(f"the only run in {path}: {found[0]}")
        return found[0]
    return path


def _measure(run: Run, config: PlayConfig) -> tuple[list[float], list[int]]:
    """Return the scores and lengths of some episodes."""
    env = make_vec_env(run.config.env, min(config.episodes, 64), config.seed, **run.config.env_options)
    with WorkProgress(config.episodes, 0, "episodes") as progress:
        player = _Player(run.model, env, progress)
        scores, lengths = evaluate_policy(
            player,  # type: ignore[arg-type]
            env,
            config.episodes,
            deterministic=config.greedy,
            return_episode_rewards=True,
            callback=player.look_at,
        )
        player.show_progress(config.episodes)
    env.close()
    assert isinstance(scores, list)
    assert isinstance(lengths, list)
    return scores, lengths


class _Player:
    """An agent that asks its environments which actions they allow, and shows how many episodes have ended."""

    def __init__(self, model: PPO, env: VecEnv, progress: WorkProgress) -> None:
        self._model, self._read_masks, self._progress = model, model.mask_reader(env), progress
        self._steps, self._n_envs = 0, env.num_envs
        self._ended: NDArray[np.int64] = np.zeros(0, np.int64)  # episodes of each environment

    def predict(self, observation: Any, **options: Any) -> tuple[Any, Any]:
        self.show_progress(int(self._ended.sum()))
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise UserError(
                f"the episodes asked for have not ended after {_MOST_STEPS:,} steps: ask for fewer --episodes"
            )
        return self._model.predict(observation, action_masks=self._read_masks(), **options)

    def look_at(self, inside: dict[str, Any], outside: dict[str, Any]) -> None:
        """Remember the counts of `evaluate_policy`, which calls this for each environment and goes on counting."""
        self._ended = inside["episode_counts"]

    def show_progress(self, ended: int) -> None:
        self._progress.update(ended, "playing", plural(self._steps * self._n_envs, "step"))
