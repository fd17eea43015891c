"""How well an agent plays: whole episodes in environments of their own."""

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
    model: PPO, env: VecEnv, episodes: int, *, greedy: bool, most_steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and lengths of so many episodes; each environment takes at most `most_steps` steps."""
    scores, lengths = evaluate_policy(
        _Player(model, env, most_steps),  # type: ignore[arg-type]
        env,
        episodes,
        deterministic=greedy,
        return_episode_rewards=True,
    )
    return np.asarray(scores, float), np.asarray(lengths, float)


class _Player:
    """An agent that asks its environments which actions they allow, and gives up at some time."""

    def __init__(self, model: PPO, env: VecEnv, most_steps: int) -> None:
        self._model, self._read_masks = model, model.mask_reader(env)
        self._steps, self._most_steps = 0, most_steps

    def predict(self, observation: Any, **options: Any) -> tuple[Any, Any]:
        self._steps += 1
        if self._steps > self._most_steps:
            raise TooLong(
                f"the episodes asked for have not ended after {self._most_steps:,} steps: ask for fewer --episodes"
            )
        return self._model.predict(observation, action_masks=self._read_masks(), **options)
