"""A family of environments as a user would add one: this file is all that it takes."""

import json
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from dae.envs import Family, Network, Protocol, register_family


class Walk(gym.Env[np.ndarray, int]):
    """Walk on a line from the middle; the right end pays 1. Now and then a gust of wind pushes to the left."""

    observation_space = spaces.Box(0, 1, (7,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.rng = np.random.default_rng()  # not gymnasium's: the family must save it

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.place = 3
        return self.see(), {}

    def see(self) -> np.ndarray:
        return np.eye(7, dtype=np.float32)[self.place]

    def step(self, action: int) -> Any:
        self.place = max(0, self.place + (1 if action else -1) - int(self.rng.random() < 0.2))
        return self.see(), float(self.place == 6), self.place in (0, 6), False, {}

    def render(self) -> np.ndarray:
        picture = np.zeros((10, 70, 3), np.uint8)
        picture[:, 10 * self.place : 10 * self.place + 10] = 255
        return picture


class Toy(Family):
    """Ids that gymnasium knows nothing about."""

    name = "toy"
    label = "Toy worlds"
    prefix = "Toy/"
    protocol = Protocol(("Toy/Walk-v0", "Toy/Run-v0"), frames=8_000, seeds=3)
    presets = {  # noqa: RUF012
        "paper": {"frames": 8_000, "actors": 4},
        "tiny": {"frames": 1_600, "actors": 4, "steps": 16, "batch_size": 64},
    }
    frames_per_step = 4
    network_names = ("baseline",)

    def require_known(self, env_id: str) -> None:
        assert env_id in self.protocol.games

    def make(self, env_id: str, n_envs: int, seed: int, **options: Any) -> DummyVecEnv:
        env = make_vec_env(lambda: Walk(**options), n_envs, seed=seed)
        assert isinstance(env, DummyVecEnv)
        return env

    def can_be_restored(self, env_id: str, **options: Any) -> bool:
        return True

    def take_snapshot(self, env: Any, observations: Any) -> bytes:
        inside = [(each.unwrapped, each) for each in env.envs]
        return json.dumps([[w.place, w.rng.bit_generator.state, m.rewards] for w, m in inside]).encode()

    def restore_snapshot(self, env: Any, snapshot: bytes) -> Any:
        env.reset()
        for each, (place, state, rewards) in zip(env.envs, json.loads(snapshot), strict=True):
            each.unwrapped.place, each.rewards = place, rewards
            each.unwrapped.rng.bit_generator.state = state
        return np.stack([each.unwrapped.see() for each in env.envs])

    def action_names(self, env: Any) -> list[str]:
        return ["back", "forth"]

    def network(self, name: str, observation_space: Any, atari_trunk: str) -> Network:
        return Network("MlpPolicy", net_arch=(8,))


register_family(Toy())
