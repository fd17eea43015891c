"""MinAtar's batch as the VecEnv that Stable-Baselines3 expects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from dae.envs.minatar.batch import MinAtarBatch
from dae.envs.minatar.rng import random_streams
from dae.envs.sb3 import SharedVecEnv
from dae.serialization import BadData


class MinAtarVecEnv(SharedVecEnv):
    """Games that step together, without a loop over them."""

    actions: NDArray[np.int64]

    def __init__(self, batch: MinAtarBatch, render_mode: str | None = None) -> None:
        self.batch = batch
        self._packed = repack_fields(batch.get_state().dtype)  # what lies between the fields is not set, so left out
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

    def take_states(self, indices: Sequence[int]) -> list[bytes]:
        states = self.batch.get_state().astype(self._packed)
        return [states[i].tobytes() for i in indices]

    def put_states(
        self, states: Sequence[bytes], indices: Sequence[int], seeds: Sequence[int] | None = None
    ) -> VecEnvObs:
        size = self._packed.itemsize
        if any(len(state) != size for state in states):
            raise BadData(f"it is not a state of {self.batch.game}, which takes {size} bytes")
        records = np.frombuffer(b"".join(states), self._packed).astype(self.batch.get_state().dtype)
        if seeds is not None:
            records["rng0"], records["rng1"] = random_streams(seeds, np.zeros(len(states), np.int64))
            records["episode_length"] = 0
        self.batch.set_state(records, list(indices))
        return self.batch.observe()[list(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        return list(self.batch.render())

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute that all environments share, once for each."""
        return [
            getattr(self if attr_name == "render_mode" else self.batch, attr_name) for _ in self._get_indices(indices)
        ]
