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


class Pixels(gym.Env[np.ndarray, int]):
    """A picture with the colours last; to say whether it is bright pays 1."""

    observation_space = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(3, 9))
        return self._see(), {}

    def step(self, action: int) -> Any:
        reward = float(bool(action) == (self.brightness > 127))
        self.left -= 1
        return self._see(), reward, self.left == 0, False, {}

    def _see(self) -> np.ndarray:
        self.brightness = int(self.np_random.integers(256))
        picture = np.zeros((36, 36, 3), np.uint8)
        picture[: 1 + self.brightness % 36, :, 1] = self.brightness  # neither rows nor colours are alike
        return picture


if "Corridor-v0" not in gym.registry:
    gym.register("Corridor-v0", entry_point=Corridor, max_episode_steps=40)
    gym.register("Pixels-v0", entry_point=Pixels)
