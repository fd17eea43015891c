"""Statistics against cases worked by hand, and against other implementations."""

import numpy as np
import pytest
from scipy import stats

from dae.report.statistics import (
    interquartile_mean,
    interquartile_mean_interval,
    mean_and_error,
    performance_profile,
    probability_of_improvement,
)


def test_mean_and_standard_error() -> None:
    # Deviations ±1.5, ±0.5: s² = (2.25 + 0.25 + 0.25 + 2.25) / 3 = 5/3, and √(5/3 / 4) = 0.6454972…
    score = mean_and_error(np.array([1.0, 2.0, 3.0, 4.0]))
    assert score.mean == 2.5
    assert score.error == pytest.approx(0.6454972243679028)
    one = mean_and_error(np.array([7.0]))
    assert one.mean == 7.0
    assert np.isnan(one.error)
    assert np.isnan(mean_and_error(np.array([])).mean)


def test_interquartile_mean() -> None:
    assert interquartile_mean(np.array([8.0, 1, 2, 3, 4, 5, 6, 700])) == (3 + 4 + 5 + 6) / 4
    assert interquartile_mean(np.array([100.0, 0, 1, 2, 3])) == (1 + 2 + 3) / 3  # a quarter of 5, rounded down, is 1
    assert interquartile_mean(np.array([5.0, 7.0])) == 6
    drawn = np.random.default_rng(0).normal(size=(3, 37))
    np.testing.assert_allclose(interquartile_mean(drawn), stats.trim_mean(drawn, 0.25, axis=-1))


def test_a_resample_draws_seeds_within_an_environment() -> None:
    # Each environment has one score for all seeds: drawn within environments nothing can change, across them it would.
    estimate = interquartile_mean_interval(np.tile([0.0, 1.0, 5.0], (10, 1)))
    assert estimate.low == estimate.value == estimate.high
    # And in each environment anew: with the same seeds in both of these, every resample would have the mean 0.
    x = np.arange(20.0)
    opposite = interquartile_mean_interval(np.stack([x, -x], -1))
    assert opposite.value == 0
    assert opposite.low < -1
    assert opposite.high > 1


def test_intervals_agree_with_another_bootstrap() -> None:
    scores = np.random.default_rng(3).normal(size=(30, 1))
    other = stats.bootstrap(
        (scores[:, 0],),
        lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=5000,
        method="percentile",
        rng=np.random.default_rng(4),
    ).confidence_interval
    ours = interquartile_mean_interval(scores)
    width = other.high - other.low
    assert ours.low == pytest.approx(other.low, abs=0.08 * width)
    assert ours.high == pytest.approx(other.high, abs=0.08 * width)
    assert interquartile_mean_interval(scores) == ours  # the same each time


def test_probability_of_improvement() -> None:
    # 1 loses twice, 2 ties twice, 3 wins twice: (0 + 1 + 2) / 6; then 5 wins twice: mean of 1/2 and 1.
    one = probability_of_improvement([np.array([1.0, 2, 3]), np.array([5.0])], [np.array([2.0, 2]), np.array([1.0, 2])])
    assert one.value == 0.75
    assert np.isnan(one.low)  # one environment has a single run: there is nothing to resample
    always = probability_of_improvement([np.array([3.0, 4])], [np.array([1.0, 2, 2.5])])
    assert (always.value, always.low, always.high) == (1, 1, 1)


def test_the_interval_of_a_probability_of_improvement() -> None:
    # Against a constant, the probability is the share of runs above it: 15 of 20, so the interval is a binomial's.
    estimate = probability_of_improvement([np.array([1.0] * 15 + [-1.0] * 5)], [np.zeros(20)])
    assert estimate.value == 0.75
    assert estimate.low == pytest.approx(stats.binom.ppf(0.025, 20, 0.75) / 20, abs=0.05)
    assert estimate.high == pytest.approx(stats.binom.ppf(0.975, 20, 0.75) / 20, abs=0.05)
    assert estimate.low < 0.6 < 0.9 < estimate.high + 0.05


def test_performance_profile() -> None:
    scores = np.array([[0.1, 0.5], [0.9, 0.5]])
    value, low, high = performance_profile(scores, np.array([0.0, 0.1, 0.5, 0.8, 0.9]))
    assert value.tolist() == [1, 0.75, 0.25, 0.25, 0]  # above, not at
    assert (low <= value).all()
    assert (value <= high).all()
    assert (low[1], high[1]) == (0.5, 1)  # the first environment may be drawn as two times 0.1, or two times 0.9
    assert np.isnan(performance_profile(scores[:1], np.array([0.0]))[1]).all()
