"""Environments of a user's own: a module that registers one when it is imported."""

from typing import Any

import gymnasium as gym
import numpy as np


class Corridor(gym.Env[np.ndarray, int]):
    """Walk to the end of a corridor: 1 for reaching it."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, length: int = 5, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = 0
        return self._see(), {}

    def step(self, action: int) -> Any:
        self.place = max(0, self.place + (1 if action else -1))
        arrived = self.place >= self.length
        return self._see(), float(arrived), arrived, False, {}

    def _see(self) -> np.ndarray:
        return np.array([self.place / self.length, 1], np.float32)

    def render(self) -> np.ndarray:
        return np.full((20, 40, 3), 10 * self.place, np.uint8)


if "Corridor-v0" not in gym.registry:
    gym.register("Corridor-v0", entry_point=Corridor, max_episode_steps=40)
