"""Batches of environments as the VecEnv that Stable-Baselines3 expects."""

import time
from collections.abc import Sequence
from typing import Any

from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices


class SharedVecEnv(VecEnv):
    """What VecEnvs have in common whose environments are not objects of their own, but share their options.

    Where `done` is True, the info has `terminal_observation` and `TimeLimit.truncated`, and where an episode ends that
    counts as a score, `episode`, as from a DummyVecEnv of environments in a Monitor.
    """

    def __init__(
        self,
        n_envs: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        render_mode: str | None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode={render_mode!r} is not known; choose None or rgb_array")
        self.render_mode = render_mode
        self._next_seed: int | None = None
        self._started = time.time()
        super().__init__(n_envs, observation_space, action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Use this seed at the next reset; every environment has a random stream of its own made from it."""
        self._next_seed = seed
        return [seed] * self.num_envs

    def _clock(self) -> float:
        """Return the seconds since the start, as a Monitor notes them."""
        return round(time.time() - self._started, 6)

    def close(self) -> None:
        """There is nothing to close."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute that all environments share, once for each."""
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise AttributeError(f"{attr_name} cannot be set: the environments of a batch share their options")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"{method_name} cannot be called: the environments of a batch are not separate objects")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Return True for Monitor: infos have its `episode`, and `evaluate_policy` checks for it this way."""
        return [issubclass(Monitor, wrapper_class) for _ in self._get_indices(indices)]
