"""Batches of environments as the VecEnv that Stable-Baselines3 expects."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from dae.envs.minatar import MinAtarBatch


class SharedVecEnv(VecEnv):
    """What VecEnvs have in common whose environments are not objects of their own, but share their options.

    Where an episode ends, the info holds `terminal_observation`, `TimeLimit.truncated` and `episode`, as from a
    DummyVecEnv of environments in a Monitor.
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


class BatchVecEnv(SharedVecEnv):
    """MinAtar's batch, without a loop over environments."""

    actions: NDArray[np.int64]

    def __init__(self, batch: MinAtarBatch, render_mode: str | None = None) -> None:
        self.batch = batch
        super().__init__(batch.n_envs, batch.observation_space, batch.action_space, render_mode)

    def reset(self) -> VecEnvObs:
        observations = self.batch.reset(self._next_seed)
        self._next_seed = None
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        step = self.batch.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if step.ended.size:
            clock = self._clock()
            returns, lengths = step.episode_returns.tolist(), step.episode_lengths.tolist()
            cut = step.truncated[step.ended].tolist()
            for k, i in enumerate(step.ended.tolist()):
                infos[i] = {
                    "terminal_observation": step.final_observations[k],
                    "TimeLimit.truncated": cut[k],
                    "episode": {"r": returns[k], "l": lengths[k], "t": clock},
                }
        return step.observations, step.rewards, step.terminated | step.truncated, infos

    def observe(self) -> VecEnvObs:
        """Return the current observations, for instance after `set_state`."""
        return self.batch.observe()

    def get_state(self) -> NDArray[np.void]:
        """Return an exact snapshot of all environments, their random streams included: a plain, indexable array."""
        return self.batch.get_state()

    def set_state(self, state: NDArray[np.void], indices: Any = None) -> None:
        """Restore a snapshot, into all environments or into those of `indices`."""
        self.batch.set_state(state, indices)

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        return list(self.batch.render())

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute that all environments share, once for each."""
        return [
            getattr(self if attr_name == "render_mode" else self.batch, attr_name) for _ in self._get_indices(indices)
        ]
