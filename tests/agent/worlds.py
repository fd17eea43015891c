"""Small worlds for the agent tests, most of them with a known answer."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Images(gym.Env[np.ndarray, int]):
    """Random pictures; action 1 pays when the first pixel is bright. Episodes last 5 to 12 steps."""

    observation_space = spaces.Box(0, 255, (3, 36, 36), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(5, 13))
        return self._look(), {}

    def _look(self) -> np.ndarray:
        self.seen = self.np_random.integers(0, 256, (3, 36, 36), dtype=np.uint8)
        return self.seen

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = float((action == 1) == (self.seen[0, 0, 0] > 127))
        self.left -= 1
        return self._look(), reward, self.left == 0, False, {}


class Known(gym.Env[np.ndarray, int]):
    """A walk through `rewards.shape[0]` states whatever is done; action a in state s pays rewards[s, a].

    Advantages are those of the paper's chain: A(s, a) = r(s, a) − Σ_a' π(a'|s) r(s, a').
    """

    def __init__(self, rewards: list[list[float]]) -> None:
        self.rewards = np.array(rewards)
        self.observation_space = spaces.Box(0, 1, (len(rewards),), np.float32)
        self.action_space = spaces.Discrete(self.rewards.shape[1])

    def _see(self) -> np.ndarray:
        return np.eye(len(self.rewards) + 1, dtype=np.float32)[self.state, :-1]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = 0
        return self._see(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = float(self.rewards[self.state, action])
        self.state += 1
        return self._see(), reward, self.state == len(self.rewards), False, {}


class Delayed(gym.Env[np.ndarray, int]):
    """The first of three actions decides the reward of the last step; the others do nothing."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def _see(self) -> np.ndarray:
        place = np.eye(4, dtype=np.float32)[self.time, :3] if self.time < 3 else np.zeros(3, np.float32)
        return np.append(place, np.float32(self.choice))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.time, self.choice = 0, 0
        return self._see(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.time == 0:
            self.choice = 1 if action == 1 else -1
        self.time += 1
        done = self.time == 3
        return self._see(), float(self.choice) if done else 0.0, done, False, {}


class Spaces(gym.Env[Any, Any]):
    """Random observations and rewards for any pair of spaces."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(np.asarray(action, getattr(self.action_space, "dtype", None)))
        self.time += 1
        return self.observation_space.sample(), float(np.sum(action)), self.time >= 6, False, {}
