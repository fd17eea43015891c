"""How much a function of states and actions changes between successive policies, and how much of that is noise.

A change d = f_i − f_{i−1} of a state and an action is known as d̂, with a Monte-Carlo error of standard deviation SE. So
|d̂| is not 0 even where d is, and E[d̂²] = d² + SE². The medians of |d̂| are the paper's; they are shown beside
what they would be if all d were 0: the two halves of the rollouts differ by noise alone. d̂² − SE² has no such bias,
because the squared standard error of a mean is estimated without one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dae.experiments.monte_carlo.values import Estimated

Floats = NDArray[np.float64]
_RESAMPLES = 1000
_SPLITS = 32


@dataclass(frozen=True)
class Changes:
    """Those between I + 1 successive policies, of S states and A actions."""

    means: Floats  # (I, S, A): d̂
    errors: Floats  # (I, S, A): SE
    noise: Floats  # (I,): the median over states and actions that |d̂| would have if all d were 0

    @staticmethod
    def between(estimates: Iterable[Estimated]) -> "Changes":
        """Return the changes from each estimate, (S, A), to the next one."""
        differences = (after - before for before, after in pairwise(estimates))  # one at a time: they are large
        found = [(change.mean, change.error, _median_of_noise(change.samples)) for change in differences]
        means, errors, noise = (np.stack(column) for column in zip(*found, strict=True))
        return Changes(means, errors, noise)

    @cached_property
    def sizes(self) -> Floats:
        return np.abs(self.means)

    @cached_property
    def squares(self) -> Floats:
        """(I, S): d² without bias, mean over actions; a single one may be below 0."""
        return np.asarray((self.means**2 - self.errors**2).mean(-1))

    @property
    def median(self) -> Floats:
        return self.quantile(0.5)

    def quantile(self, share: float) -> Floats:
        """(I,): of |d̂| over all states and actions."""
        return np.asarray(np.quantile(self.sizes, share, axis=(1, 2)))

    @cached_property
    def rms(self) -> Floats:
        """(I,): root of the mean of d²."""
        return _root(self.squares.mean(-1))

    @cached_property
    def rms_error(self) -> Floats:
        """(I,): its standard error, over states."""
        return np.asarray(_root(self.squares @ _weights(self.squares.shape[1])).std(-1))

    def overall_rms(self) -> "Resampled":
        """Return the root of the mean of d² over all pairs of policies."""
        of_states = self.squares.mean(0)
        return Resampled(float(_root(of_states.mean())), _root(of_states @ _weights(len(of_states))))

    def overall_median(self) -> "Resampled":
        """Return the mean over pairs of policies of the median of |d̂|."""
        drawn = _draws(self.sizes.shape[1])
        medians = [np.median(self.sizes[:, states], axis=(1, 2)).mean() for states in drawn]
        return Resampled(float(self.median.mean()), np.array(medians))


@dataclass(frozen=True)
class Resampled:
    """A number, and what it is with states drawn again from those that there are: the same ones for all numbers."""

    value: float
    resampled: Floats

    @property
    def error(self) -> float:
        return float(self.resampled.std())


@dataclass(frozen=True)
class Comparison:
    """A's changes against Q's, by one measure."""

    a: Resampled
    q: Resampled

    @property
    def ratio(self) -> float:
        return float(_ratio(self.a.value, self.q.value))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The ratio's 95 % interval over states; from 0 to infinity where there are ratios of 0 to 0."""
        ratios = _ratio(self.a.resampled, self.q.resampled)
        if np.isnan(ratios).any():
            return 0.0, math.inf
        low, high = np.quantile(ratios, [0.025, 0.975], method="inverted_cdf")
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        low, high = self.interval
        return "A moved less than Q" if high < 1 else "A moved more than Q" if low > 1 else "cannot be told"


def _median_of_noise(samples: Floats) -> Floats:
    """Return the median of |noise of the mean| of (S, A, N) samples.

    The difference between the means of two halves has expectation 0, and, scaled, the variance of the mean of all. Many
    ways to split the samples are taken together.
    """
    n = samples.shape[-1]
    first, second = n // 2, n - n // 2
    halves = np.repeat([1 / first, -1 / second], [first, second])
    splits = np.random.default_rng(0).permuted(np.tile(halves, (_SPLITS, 1)), axis=1)
    scale = math.sqrt(1 / n / (1 / first + 1 / second))
    return np.asarray(np.median(np.abs(samples @ (scale * splits.T))))


def _root(squares: Floats | float) -> Floats:
    return np.sqrt(np.maximum(0.0, squares))


def _ratio(a: Floats | float, q: Floats | float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(a, q)


def _draws(states: int) -> NDArray[np.int64]:
    """(resamples, states)."""
    return np.random.default_rng(0).integers(states, size=(_RESAMPLES, states))


def _weights(states: int) -> Floats:
    """(states, resamples): how often each state is drawn, as shares."""
    return np.stack([np.bincount(drawn, minlength=states) for drawn in _draws(states)], -1) / states
