"""Q and A under each policy, by Monte Carlo: a file for each policy, from which a study continues."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.agent import PPO
from dae.experiments.arrays import Damaged, read_arrays, write_arrays
from dae.experiments.loading import hash_weights
from dae.experiments.monte_carlo import ActionValues, Simulator, action_values
from dae.experiments.monte_carlo.values import Estimated


@dataclass(frozen=True)
class Measured:
    """What rollouts of one policy gave."""

    returns: NDArray[np.float32]  # (S, A, N)
    probabilities: NDArray[np.float64]  # (S, A)
    lengths: NDArray[np.float32]  # (S, A): mean over rollouts
    cut: NDArray[np.float32]  # (S, A): share of the rollouts that were cut

    @property
    def q(self) -> Estimated:
        return self._values.q

    @property
    def advantages(self) -> Estimated:
        return self._values.advantages

    @property
    def _values(self) -> ActionValues:
        nothing: Any = np.zeros(0)  # lengths and cuts of single rollouts are not kept
        return ActionValues(self.returns.astype(np.float64), self.probabilities, nothing, nothing)


@dataclass(frozen=True)
class Measuring:
    """How values are measured: in the same way for all policies."""

    states: Sequence[bytes]
    rollouts: int
    horizon: int
    gamma: float
    seed: int
    share_random_numbers: bool

    def measure(self, simulator: Simulator, iteration: int, watch: Callable[[int], None]) -> Measured:
        """Let the simulator's policy, which is that of an iteration, play."""
        values = action_values(
            simulator,
            self.states,
            rollouts=self.rollouts,
            horizon=self.horizon,
            gamma=self.gamma,
            seed=self._seed_of(iteration),
            watch=watch,
        )
        return Measured(
            values.returns.astype(np.float32),
            values.probabilities,
            values.lengths.mean(-1, dtype=np.float32),
            values.cut.mean(-1, dtype=np.float32),
        )

    def fingerprint(self, model: PPO, iteration: int) -> str:
        """Return what tells values apart that were measured with another policy, in other states, or in another way."""
        told = hashlib.sha256(f"{self.rollouts} {self.horizon} {self.gamma} {self._seed_of(iteration)}".encode())
        for state in self.states:
            told.update(hashlib.sha256(state).digest())
        hash_weights(model, told)
        return told.hexdigest()

    def _seed_of(self, iteration: int) -> int:
        """Return a seed for the rollouts of a policy: the same for all if they share random numbers."""
        entropy = (self.seed, 0 if self.share_random_numbers else iteration)
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def write_measured(path: Path, measured: Measured, fingerprint: str) -> None:
    write_arrays(path, {**vars(measured), "fingerprint": np.array(fingerprint)})


def read_measured(path: Path, shape: tuple[int, int, int], fingerprint: str) -> Measured:
    """Return what was measured, of (states, actions, rollouts); what is not that is `Damaged`."""
    arrays = read_arrays(path)
    if str(arrays.pop("fingerprint", "")) != fingerprint:
        raise Damaged("it was measured with another policy, in other states, or in another way")
    expected = {"returns": shape, "probabilities": shape[:2], "lengths": shape[:2], "cut": shape[:2]}
    if {name: array.shape for name, array in arrays.items()} != expected:
        raise Damaged("it holds other arrays")
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays.values()):
        raise Damaged("it holds what are no numbers")
    return Measured(**arrays)
