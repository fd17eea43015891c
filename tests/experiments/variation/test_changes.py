"""The statistics of the variation study, against loops and against a known truth."""

import math
import statistics

import numpy as np
import pytest

from dae.experiments.monte_carlo import ActionValues
from dae.experiments.monte_carlo.values import Estimated
from dae.experiments.variation.changes import Changes, Comparison, Resampled
from dae.experiments.variation.config import parse
from dae.experiments.variation.summary import Result, describe, overview


def policies(
    rng: np.random.Generator, number: int, states: int = 4, actions: int = 3, rollouts: int = 5
) -> list[ActionValues]:
    """Values of policies that are made up."""
    made = []
    for _ in range(number):
        weights = rng.random((states, actions))
        returns = rng.normal(size=(states, actions, rollouts))
        nothing = np.zeros(returns.shape, np.int64)
        made.append(ActionValues(returns, weights / weights.sum(-1, keepdims=True), nothing, nothing > 0))
    return made


def test_changes_are_those_of_a_plain_loop() -> None:
    made = policies(np.random.default_rng(0), 3)
    changes = Changes.between(values.advantages for values in made)
    assert changes.means.shape == (2, 4, 3)
    for i in range(2):
        squares = []
        for s in range(4):
            for a in range(3):
                samples = []
                for n in range(5):
                    before, after = (
                        p.returns[s, a, n] - sum(p.probabilities[s, b] * p.returns[s, b, n] for b in range(3))
                        for p in made[i : i + 2]
                    )
                    samples.append(after - before)
                mean, error = statistics.mean(samples), statistics.stdev(samples) / math.sqrt(5)
                assert changes.means[i, s, a] == pytest.approx(mean)
                assert changes.errors[i, s, a] == pytest.approx(error)
                squares.append(mean**2 - error**2)
        sizes = sorted(abs(changes.means[i]).ravel().tolist())
        assert changes.median[i] == pytest.approx(statistics.median(sizes))
        assert [changes.quantile(0.25)[i], changes.quantile(0.75)[i]] == pytest.approx(
            [statistics.quantiles(sizes, method="inclusive")[k] for k in (0, 2)]
        )
        assert changes.rms[i] == pytest.approx(math.sqrt(max(0, statistics.mean(squares))))


def drawn(rng: np.random.Generator, truth: np.ndarray, spread: np.ndarray, rollouts: int) -> Estimated:
    """An estimate of known means from skewed samples."""
    noise = rng.exponential(size=(*truth.shape, rollouts)) - 1
    return Estimated(truth[..., None] + spread[..., None] * noise)


def test_the_rms_has_no_bias_from_noise_and_the_noise_is_what_nothing_gives() -> None:
    rng = np.random.default_rng(1)
    shape = (2000, 3)
    before, moved = rng.normal(size=shape), 0.3 * rng.normal(size=shape)
    spread = rng.uniform(0.5, 3, shape)
    estimates = [drawn(rng, truth, spread, 8) for truth in (before, before, before + moved)]
    changes = Changes.between(estimates)
    nothing, something = changes.squares.mean(-1)
    errors = changes.squares.std(-1) / math.sqrt(shape[0])
    assert abs(nothing) < 3 * errors[0]
    assert abs(something - (moved**2).mean()) < 3 * errors[1]
    assert changes.rms[1] == pytest.approx(0.3, abs=3 * changes.rms_error[1])
    naive = np.sqrt((changes.means**2).mean((1, 2)))
    assert naive[0] > 0.5, "noise alone looks like a change"
    assert changes.median[0] == pytest.approx(changes.noise[0], rel=0.05)


def test_the_median_of_noise_is_that_of_a_mixture_of_normals() -> None:
    rng = np.random.default_rng(2)
    spread = np.repeat(rng.uniform(0.0, 2, (10, 3)), 500, axis=0)
    for rollouts in (2, 7, 16):
        estimates = [Estimated(5 + spread[..., None] * rng.normal(size=(*spread.shape, rollouts))) for _ in range(2)]
        simulated = np.median(np.abs(spread * np.sqrt(2 / rollouts) * rng.normal(size=(50, *spread.shape))))
        assert Changes.between(estimates).noise[0] == pytest.approx(simulated, rel=0.03)


def changes_of(means: np.ndarray, error: float) -> Changes:
    return Changes(means, np.full(means.shape, error), np.zeros(len(means)))


def made_up(size: float, noise: float, states: int = 200) -> Changes:
    rng = np.random.default_rng(3)
    truth = size * rng.normal(size=(5, states, 3))
    return changes_of(truth + noise * rng.normal(size=truth.shape), noise)


@pytest.mark.parametrize(
    ("of_a", "of_q", "verdict"),
    [(1.0, 1.5, "A moved less than Q"), (1.5, 1.0, "A moved more than Q"), (1.0, 1.02, "cannot be told")],
)
def test_the_verdict_asks_the_interval_of_the_ratio(of_a: float, of_q: float, verdict: str) -> None:
    a, q = made_up(of_a, 0.5), made_up(of_q, 0.5)
    q = changes_of(q.means[:, ::-1], 0.5)  # other states
    by_rms = Comparison(a.overall_rms(), q.overall_rms())
    for by in (by_rms, Comparison(a.overall_median(), q.overall_median())):
        low, high = by.interval
        assert low < by.ratio < high
        assert by.verdict == verdict
    assert by_rms.interval[0] < of_a / of_q < by_rms.interval[1]


def test_noise_of_different_size_decides_the_medians_but_not_the_rms() -> None:
    quiet, loud = made_up(1.0, 0.1), made_up(1.0, 3.0, states=400)
    assert loud.median.mean() > 1.5 * quiet.median.mean()
    assert loud.overall_rms().value == pytest.approx(1.0, abs=4 * loud.overall_rms().error)


def test_where_nothing_moves_nothing_can_be_told() -> None:
    still = changes_of(np.zeros((2, 4, 3)), 0.0)
    by = Comparison(still.overall_rms(), still.overall_rms())
    assert (by.interval, by.verdict) == ((0.0, math.inf), "cannot be told")
    assert math.isnan(by.ratio)
    only_a = Comparison(Resampled(1.0, np.ones(10)), Resampled(0.0, np.zeros(10)))
    assert only_a.verdict == "A moved more than Q"


def test_errors_over_states_are_those_of_repeated_studies() -> None:
    rng = np.random.default_rng(4)
    values, errors = [], []
    for _ in range(200):
        truth = rng.normal(size=(1, 60, 2)) * rng.exponential(size=(1, 60, 1))
        measured = changes_of(truth + 0.5 * rng.normal(size=truth.shape), 0.5).overall_rms()
        values.append(measured.value)
        errors.append(measured.error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.25)


def test_a_verdict_of_medians_says_if_it_is_noise() -> None:
    plan = parse(["Breakout", "--iterations", "6"]).plans[0]
    a, q = made_up(1.0, 0.5), made_up(1.5, 0.5)
    for noise, told in ((0.1, "A moved less than Q"), (0.6, "A moved less than Q (mostly noise)")):
        noisy = {name: Changes(of.means, of.errors, np.full(5, noise)) for name, of in (("A", a), ("Q", q))}
        result = Result(plan, noisy, share_cut=0.25, mean_length=31.4)
        assert describe(result).splitlines()[-2:] == [
            "noise removed: A moved less than Q",
            f"by the paper's median: {told}",
        ]
        assert "of 31 steps on average; 25.0% were cut, where γ^512 is 0.0058" in describe(result)
        assert overview([result]).splitlines()[-1].endswith(told)
