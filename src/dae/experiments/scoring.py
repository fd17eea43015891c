"""How well an agent plays: whole episodes in environments of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.errors import UserError

MOST_ENVS = 64


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
