"""The meter reports the estimator's errors, not its own: against brute force, and truths with known noise."""

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import kendalltau, norm as normal, t as student

from dae.experiments.monte_carlo import ActionValues
from dae.experiments.quality.measures import Quality, Truth, judge, sure_errors
from dae.theory import advantages, random_mdp, random_policy
from tests.finite import make_env, table_agent

Floats = NDArray[np.float64]
RNG = np.random.default_rng(0)
MDP = random_mdp(RNG, n_states=24, n_actions=4, absorbing=1, unreachable=0)
POLICY = random_policy(RNG, MDP)
EXACT = advantages(MDP, POLICY)
MODEL = table_agent(MDP, POLICY, env=make_env(MDP, 1), correction=0.0, row_length=None)


def truth(rng: np.random.Generator, *, rollouts: int = 40, noise: float = 1.0) -> Truth:
    """A truth as rollouts would give it: Q-values with independent noise of a known size."""
    returns = EXACT[..., None] + noise * rng.normal(size=(*EXACT.shape, rollouts))
    values = ActionValues(returns, POLICY, np.ones(returns.shape, int), np.zeros(returns.shape, bool))
    return Truth(values, MODEL, torch.eye(MDP.n_states))


def numbers(quality: Quality) -> dict[str, float]:
    return {name: measured.value for name, measured in vars(quality).items()}


def test_without_noise_all_measures_are_those_of_their_definitions() -> None:
    exact = truth(RNG, noise=0.0)
    estimates = EXACT[..., None] + RNG.normal(size=(*EXACT.shape, 3))
    found = numbers(judge(estimates, exact))
    errors = estimates - EXACT[..., None]
    assert found["bias"] == pytest.approx(errors.mean())
    assert found["mse"] == pytest.approx((errors**2).mean())
    assert found["noise"] == pytest.approx(estimates.var(-1, ddof=1).mean())
    assert found["relative"] == pytest.approx((errors**2).mean() / (EXACT**2).mean())
    assert found["relative_under_policy"] == pytest.approx(
        (POLICY * (errors**2).mean(-1)).sum() / (POLICY * EXACT**2).sum()
    )
    assert found["centring"] == pytest.approx(np.sqrt((((POLICY[..., None] * estimates).sum(1)) ** 2).mean()))
    ordinary = ~MDP.absorbing  # elsewhere all actions are the same
    taus = [kendalltau(EXACT[s], estimates[s, :, r]).statistic for s in np.flatnonzero(ordinary) for r in range(3)]
    assert found["rank_correlation"] == pytest.approx(np.mean(taus))
    best = EXACT.argmax(1)[:, None] == estimates.argmax(1)
    assert found["best_action"] == pytest.approx(best[ordinary].mean())


def test_the_cosine_is_that_of_the_policy_gradients() -> None:
    """With a table of logits, the gradient of Σ π A is π (A − Σ π A) by hand, and its bias's the sum over states."""
    exact = truth(RNG, noise=0.0)
    estimates = EXACT + RNG.normal(size=EXACT.shape)

    def gradient(weights: Floats) -> Floats:
        table = POLICY * (weights - (POLICY * weights).sum(1, keepdims=True))
        return np.concatenate((table.ravel(), table.sum(0)))

    one, other = gradient(EXACT), gradient(estimates)
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert numbers(judge(estimates[..., None], exact))["gradient_cosine"] == pytest.approx(expected, abs=1e-5)


def test_exact_advantages_are_perfect_however_noisy_the_truth_is() -> None:
    found = [judge(EXACT[..., None], truth(np.random.default_rng(i), rollouts=10)) for i in range(36)]
    for name, expected in {
        "bias": 0.0,
        "mse": 0.0,
        "relative": 0.0,
        "relative_under_policy": 0.0,
        "gradient_cosine": 1.0,
    }.items():
        measured = np.array([getattr(quality, name).value for quality in found])
        assert abs(measured.mean() - expected) < 4 * measured.std() / 6, name
        # The error that is reported is the one that there is.
        assert np.mean([getattr(quality, name).error for quality in found]) == pytest.approx(measured.std(), rel=0.5)
    ranks = [quality.rank_correlation.value for quality in found]
    assert np.nanmean(ranks) > 0.99
    assert np.nanmean([quality.best_action.value for quality in found]) > 0.99


def test_the_noise_of_the_truth_is_subtracted() -> None:
    wrong = EXACT + 0.3 * RNG.normal(size=EXACT.shape)
    exact = ((wrong - EXACT) ** 2).mean()
    found, naive = [], []
    for i in range(36):
        noisy = truth(np.random.default_rng(i), rollouts=10)
        found.append(judge(wrong[..., None], noisy).mse.value)
        naive.append(((wrong - noisy.values.advantages.mean) ** 2).mean())
    assert abs(np.mean(found) - exact) < 4 * np.std(found) / 6
    assert np.mean(naive) > 1.5 * exact  # which a meter without the correction would report


def test_only_pairs_that_the_truth_tells_apart_have_an_order() -> None:
    noisy = truth(RNG, rollouts=20)
    q = noisy.values.returns
    for s, (a, b) in itertools.product(range(MDP.n_states), itertools.permutations(range(MDP.n_actions), 2)):
        difference = q[s, a] - q[s, b]
        sure = abs(difference.mean()) > student.isf(normal.sf(3), 19) * difference.std(ddof=1) / np.sqrt(20)
        assert noisy.order[s, a, b] == (np.sign(difference.mean()) if sure else 0)
    for s in range(MDP.n_states):
        winners = [a for a in range(MDP.n_actions) if (noisy.order[s, a] > 0).sum() == MDP.n_actions - 1]
        assert noisy.best[s] == (winners[0] if winners else -1)


def test_few_samples_need_more_standard_errors_to_be_sure() -> None:
    for n in (10, 16, 64, 1000):
        assert sure_errors(n) == pytest.approx(student.isf(normal.sf(3), n - 1), rel=0.012)


def test_of_equal_estimates_one_is_best_by_chance() -> None:
    found = judge(np.zeros((*EXACT.shape, 1)), truth(RNG, noise=0.0))
    assert (found.best_action.value, found.rank_correlation.value) == (pytest.approx(0.25), 0.0)


def test_where_the_truth_knows_nothing_there_is_no_number() -> None:
    returns = np.broadcast_to(RNG.normal(size=(MDP.n_states, 1, 8)), (*EXACT.shape, 8))  # the same for all actions
    blind = Truth(
        ActionValues(returns, POLICY, np.ones(returns.shape, int), np.zeros(returns.shape, bool)),
        MODEL,
        torch.eye(MDP.n_states),
    )
    found = judge(EXACT[..., None], blind)
    assert (blind.order == 0).all()
    assert np.isnan([found.rank_correlation.value, found.best_action.value]).all()
