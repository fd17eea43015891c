"""How well an agent plays: whole episodes in environments of their own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs.snapshots import set_generators, take_generators
from dae.errors import UserError

MOST_ENVS = 64


@contextlib.contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Let what happens within depend on a seed alone, and leave no trace in the generators of the program."""
    generators = take_generators()
    on_gpus = torch.cuda.get_rng_state_all() if device.type == "cuda" else []
    try:
        set_random_seed(seed)
        yield
    finally:
        set_generators(generators)
        torch.cuda.set_rng_state_all(on_gpus)


class TooLong(UserError):
    """Episodes that do not end in the steps there are for them."""


def measure(
    model: PPO,
    env: VecEnv,
    episodes: int,
    *,
    greedy: bool,
    most_steps: int,
    watch: Callable[[int, int], None] = lambda ended, steps: None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and lengths of so many episodes; each environment takes at most `most_steps` steps.

    `watch` is told how many episodes have ended, and the steps of all environments.
    """
    player = _Player(model, env, most_steps, watch)
    scores, lengths = evaluate_policy(
        player,  # type: ignore[arg-type]
        env,
        episodes,
        deterministic=greedy,
        return_episode_rewards=True,
        callback=player.look_at,
    )
    return np.asarray(scores, float), np.asarray(lengths, float)


class _Player:
    """An agent that asks its environments which actions they allow, and gives up at some time."""

    def __init__(self, model: PPO, env: VecEnv, most_steps: int, watch: Callable[[int, int], None]) -> None:
        self._model, self._read_masks, self._watch = model, model.mask_reader(env), watch
        self._steps, self._most_steps, self._n_envs = 0, most_steps, env.num_envs
        self._ended: NDArray[np.int64] = np.zeros(0, np.int64)  # episodes of each environment

    def predict(self, observation: Any, **options: Any) -> tuple[Any, Any]:
        self._watch(int(self._ended.sum()), self._steps * self._n_envs)
        self._steps += 1
        if self._steps > self._most_steps:
            raise TooLong(f"the episodes asked for have not ended after {self._most_steps:,} steps")
        return self._model.predict(observation, action_masks=self._read_masks(), **options)

    def look_at(self, inside: dict[str, Any], outside: dict[str, Any]) -> None:
        """Remember the counts of `evaluate_policy`, which calls this for each environment and goes on counting."""
        self._ended = inside["episode_counts"]
