"""Statistics over runs: mean and standard error as in the paper, and robust ones with bootstrap intervals.

The robust ones follow Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (2021):
scores are an array of (seeds, environments), and a resample draws seeds with replacement within each environment.
Everything is drawn from a fixed seed, so that the same runs give the same intervals.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dae.paper import Score

Numbers = NDArray[np.float64]
RESAMPLES = 2000
LEVEL = 0.95
_CHUNK = 100  # resamples that are held at a time


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval; NaN at both ends where there is none."""

    value: float
    low: float
    high: float


def mean_and_error(scores: Numbers) -> Score:
    """Return the mean over seeds and its standard error, s/√n with n - 1 degrees of freedom."""
    n = len(scores)
    if not n:
        return Score(float("nan"), float("nan"))
    if n > 1 and (scores == scores[0]).all():  # a mean that is rounded would make it a little more than 0
        return Score(float(scores[0]), 0.0)
    error = float(np.std(scores, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Score(float(np.mean(scores)), error)


def interquartile_mean(scores: Numbers) -> Numbers:
    """Return the mean of the middle half along the last axis: a quarter (rounded down) is cut off at each end."""
    n = scores.shape[-1]
    cut = n // 4
    middle: Numbers = np.sort(scores, -1)[..., cut : n - cut].mean(-1)
    return middle


def interquartile_mean_interval(scores: Numbers) -> Estimate:
    """Return the IQM of all runs on all environments, with its interval."""
    value = float(interquartile_mean(scores.ravel()))
    if len(scores) < 2:
        return Estimate(value, float("nan"), float("nan"))
    return _with_interval(value, np.concatenate([interquartile_mean(drawn) for drawn in _resample(scores)]))


def performance_profile(scores: Numbers, thresholds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the fraction of runs with a score above each threshold, and the ends of its intervals."""
    value = _fraction_above(scores.ravel(), thresholds)
    if len(scores) < 2:
        nothing = np.full_like(value, np.nan)
        return value, nothing, nothing
    fractions = [_fraction_above(row, thresholds) for drawn in _resample(scores) for row in drawn]
    low, high = np.quantile(np.array(fractions), _ends(), axis=0)
    return value, low, high


def probability_of_improvement(first: list[Numbers], second: list[Numbers]) -> Estimate:
    """Return the chance that a run of the first beats one of the second, ties half, averaged over environments.

    first, second: for each environment the scores of the runs, as many as there are.
    """
    rng = np.random.default_rng(0)
    value, drawn = 0.0, np.zeros(RESAMPLES)
    for x, y in zip(first, second, strict=True):
        wins = (x[:, None] > y[None, :]) + 0.5 * (x[:, None] == y[None, :])
        value += float(wins.mean()) / len(first)
        # How often each run is drawn is all that a resample changes.
        times_x = rng.multinomial(len(x), np.full(len(x), 1 / len(x)), RESAMPLES) / len(x)
        times_y = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), RESAMPLES) / len(y)
        drawn += ((times_x @ wins) * times_y).sum(-1) / len(first)
    if min(map(len, [*first, *second])) < 2:
        return Estimate(value, float("nan"), float("nan"))
    return _with_interval(value, drawn)


def _fraction_above(scores: Numbers, thresholds: Numbers) -> Numbers:
    above: Numbers = 1 - np.searchsorted(np.sort(scores), thresholds, side="right") / len(scores)
    return above


def _resample(scores: Numbers) -> Iterator[Numbers]:
    """Yield resamples in chunks of (resamples, seeds x environments)."""
    rng = np.random.default_rng(0)
    seeds, environments = scores.shape
    for _ in range(RESAMPLES // _CHUNK):
        rows = rng.integers(seeds, size=(_CHUNK, seeds, environments))
        yield np.take_along_axis(scores[None], rows, 1).reshape(_CHUNK, -1)


def _ends() -> list[float]:
    return [(1 - LEVEL) / 2, (1 + LEVEL) / 2]


def _with_interval(value: float, drawn: Numbers) -> Estimate:
    low, high = np.quantile(drawn, _ends())
    return Estimate(value, float(low), float(high))
