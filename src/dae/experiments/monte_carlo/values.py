"""Q, V and A of states by Monte Carlo, with their errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dae.experiments.monte_carlo.rollouts import Outcomes, Plan, Simulator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimated:
    """Means of N samples, and their standard errors."""

    samples: Floats  # (..., N): independent of each other, of identical distribution

    @cached_property
    def mean(self) -> Floats:
        return np.asarray(self.samples.mean(-1))

    @cached_property
    def error(self) -> Floats:
        """NaN where there is only one sample."""
        n = self.samples.shape[-1]
        if n == 1:
            return np.full_like(self.mean, np.nan)
        shifted = self.samples - self.samples[..., :1]  # so that equal samples have no error, not even one of rounding
        return np.asarray(shifted.std(-1, ddof=1) / np.sqrt(n))

    def __sub__(self, other: "Estimated") -> "Estimated":
        """Return the difference, sample by sample, which is right also where both have the same random numbers."""
        return Estimated(self.samples - other.samples)


@dataclass(frozen=True)
class ActionValues:
    """The returns of N rollouts for each action in each of S states."""

    returns: Floats  # (S, A, N)
    probabilities: Floats  # (S, A): π(·|s)
    lengths: NDArray[np.int64]  # (S, A, N)
    cut: NDArray[np.bool_]  # (S, A, N)

    @cached_property
    def q(self) -> Estimated:
        """Q(s, a), (S, A)."""
        return Estimated(self.returns)

    @cached_property
    def v(self) -> Estimated:
        """V(s) = Σ_a π(a|s) Q(s, a), (S,)."""
        return Estimated(np.einsum("sa,san->sn", self.probabilities, self.returns))

    @cached_property
    def advantages(self) -> Estimated:
        """A(s, a) = Q(s, a) − V(s), (S, A): the n-th rollouts of all actions make the n-th sample, for right errors."""
        return Estimated(self.returns - self.v.samples[:, None])


def action_values(
    simulator: Simulator,
    states: Sequence[bytes],
    *,
    rollouts: int,
    horizon: int,
    gamma: float,
    seed: int,
    share_among_actions: bool = False,
    watch: Callable[[int], None] = lambda ended: None,
) -> ActionValues:
    """Let the policy play `rollouts` times from every state after every action.

    The same seed gives the same random numbers to the same rollouts, also of another policy. With
    `share_among_actions` the rollouts of the actions of a state share theirs: where actions soon lead to the same
    states, what follows is the same too, and differences between actions have smaller errors.
    """
    shape = (len(states), simulator.n_actions, rollouts)
    starts, actions, repeats = (index.ravel() for index in np.indices(shape))
    apart = starts * rollouts + repeats if share_among_actions else np.arange(starts.size)
    plan = Plan(starts, actions, apart, seed)
    played: Outcomes = simulator.play_out(states, plan, horizon=horizon, gamma=gamma, watch=watch)
    probabilities = simulator.probabilities(simulator.observe(states)).double().numpy()
    probabilities /= probabilities.sum(-1, keepdims=True)  # in single precision they sum to almost 1
    return ActionValues(
        played.returns.reshape(shape), probabilities, played.lengths.reshape(shape), played.cut.reshape(shape)
    )
