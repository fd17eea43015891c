"""The theorems of the paper, exactly, on random finite MDPs."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dae import theory
from dae.theory import FiniteMDP
from dae.theory.losses import centered_basis
from dae.theory.mdp import Floats
from tests.theory import enumeration

TOLERANCE = 1e-10
DISCOUNTED = (0.0, 0.3, 0.9, 0.99)
ANY_GAMMA = (*DISCOUNTED, 1.0)  # what needs no V needs no discount


@dataclass
class Case:
    mdp: FiniteMDP
    policy: Floats
    n: int
    target: Floats
    values: Floats

    @property
    def reachable(self) -> np.ndarray:
        """The pairs that n steps can visit."""
        return theory.reachable(self.mdp, self.policy, self.n)

    @property
    def counted(self) -> np.ndarray:
        """Those that the theorems' losses see: step t is discounted by γ^t, so with γ = 0 only the first counts."""
        return theory.reachable(self.mdp, self.policy, self.n if self.mdp.gamma > 0 else 1)


@st.composite
def cases(
    draw: st.DrawFn,
    max_states: int = 8,
    max_actions: int = 4,
    max_steps: int = 12,
    gammas: tuple[float, ...] = DISCOUNTED,
) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    absorbing, unreachable = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    mdp = theory.random_mdp(
        rng,
        n_states=absorbing + unreachable + draw(st.integers(1, max_states - 4)),
        n_actions=draw(st.integers(1, max_actions)),
        gamma=draw(st.sampled_from(gammas)),
        branching=draw(st.integers(1, 3)),
        absorbing=absorbing,
        unreachable=unreachable,
    )
    policy = theory.random_policy(rng, mdp, forbidden=draw(st.sampled_from([0.0, 0.3])))
    target, values = rng.normal(size=(2, mdp.n_states))
    return Case(mdp, policy, draw(st.integers(1, max_steps)), 3 * target, 3 * values)


def assert_close(actual: Floats, expected: Floats, where: np.ndarray) -> None:
    np.testing.assert_allclose(actual[where], expected[where], rtol=0, atol=TOLERANCE)


@given(cases())
def test_values_satisfy_the_bellman_equation_and_advantages_are_centred(case: Case) -> None:
    mdp, policy = case.mdp, case.policy
    v, q, a = theory.state_values(mdp, policy), theory.action_values(mdp, policy), theory.advantages(mdp, policy)
    everywhere = np.ones(mdp.n_states, bool)
    assert_close((policy * q).sum(1), v, everywhere)
    assert_close((policy * a).sum(1), np.zeros_like(v), everywhere)
    assert (v[mdp.absorbing] == 0).all()


@given(cases())
def test_theorem_1_the_minimiser_is_the_advantage(case: Case) -> None:
    best = theory.monte_carlo_loss(case.mdp, case.policy, case.n).best_advantages()
    assert_close(best, theory.advantages(case.mdp, case.policy), case.counted)


@given(cases(gammas=ANY_GAMMA))
def test_theorem_2_the_best_value_is_the_n_step_value_whatever_the_advantages(case: Case) -> None:
    loss = theory.bootstrapped_loss(case.mdp, case.policy, case.n, case.target)
    n_step = (case.policy * theory.n_step_action_values(case.mdp, case.policy, case.n, case.target)).sum(1)
    rng = np.random.default_rng(0)
    basis = centered_basis(case.policy)
    for _ in range(3):
        centred = (basis @ rng.normal(size=basis.shape[1])).reshape(case.policy.shape)
        assert_close(loss.best_values(centred), n_step, case.mdp.start > 0)


@given(cases(gammas=ANY_GAMMA))
def test_theorem_2_the_best_advantage_has_the_stated_weights(case: Case) -> None:
    loss = theory.bootstrapped_loss(case.mdp, case.policy, case.n, case.target)
    weights = theory.theorem_2_weights(case.mdp, case.policy, case.n)
    expected = theory.theorem_2_advantages(case.mdp, case.policy, weights, case.target)
    assert_close(loss.best_advantages(), expected, case.counted)


@given(cases(max_steps=6))
def test_the_best_advantage_is_best_whatever_the_values(case: Case) -> None:
    """The derivative of the loss itself, in every centred direction and for any V̂, is zero there."""
    for loss in (
        theory.bootstrapped_loss(case.mdp, case.policy, case.n, case.target),
        theory.suffix_loss(case.mdp, case.policy, case.n, case.target),
    ):
        best = loss.best_advantages()
        for values in (case.values, np.zeros_like(case.values), -5 * case.values):
            for direction in centered_basis(case.policy).T.reshape(-1, *case.policy.shape):
                slope = (loss(best + direction, values) - loss(best - direction, values)) / 2
                assert slope == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(("gamma", "length"), [(0.5, 60), (0.9, 200), (0.99, 128)])
def test_late_states_of_a_long_chain_are_as_exact_as_early_ones(gamma: float, length: int) -> None:
    """Step 60 weighs 0.5^120 in the losses of the theorems; its advantage must not drown in rounding."""
    rng = np.random.default_rng(0)
    mdp = theory.chain(length, gamma=gamma, best=rng.integers(2, size=length))
    policy = theory.random_policy(rng, mdp)
    exact = theory.advantages(mdp, policy)[:-1]
    for loss in (
        theory.monte_carlo_loss(mdp, policy, length),
        theory.bootstrapped_loss(mdp, policy, length, theory.state_values(mdp, policy)),
    ):
        np.testing.assert_allclose(loss.best_advantages()[:-1], exact, atol=TOLERANCE)


@given(cases())
def test_theorem_2_with_the_true_value_as_target_gives_the_advantage(case: Case) -> None:
    loss = theory.bootstrapped_loss(case.mdp, case.policy, case.n, theory.state_values(case.mdp, case.policy))
    assert_close(loss.best_advantages(), theory.advantages(case.mdp, case.policy), case.counted)


@given(cases(gammas=ANY_GAMMA))
def test_the_suffix_loss_has_the_same_minimiser_with_other_weights(case: Case) -> None:
    mdp, policy, n = case.mdp, case.policy, case.n
    loss = theory.suffix_loss(mdp, policy, n, case.target)
    weights = theory.suffix_weights(mdp, policy, n)
    if mdp.gamma < 1:
        geometric = (1 - mdp.gamma ** (2 * np.arange(1, n + 1))) / (1 - mdp.gamma**2)
        np.testing.assert_allclose(weights, geometric[:, None] * theory.occupancies(mdp, policy, n), atol=1e-14)
    expected = theory.theorem_2_advantages(mdp, policy, weights, case.target)
    assert_close(loss.best_advantages(), expected, case.reachable)
    if mdp.gamma < 1:
        true_target = theory.suffix_loss(mdp, policy, n, theory.state_values(mdp, policy))
        assert_close(true_target.best_advantages(), theory.advantages(mdp, policy), case.reachable)


@given(cases(max_states=7, max_actions=2, max_steps=3))
@settings(max_examples=25)
def test_losses_and_minimisers_equal_the_sum_over_all_trajectories(case: Case) -> None:
    mdp, policy, n, basis = case.mdp, case.policy, case.n, centered_basis(case.policy)
    rng = np.random.default_rng(1)
    f = rng.normal(size=policy.shape)  # not centred: the quadratic form holds for every table
    every = enumeration.Enumeration(mdp, policy, n)
    for exact, brute, seen in (
        (theory.bootstrapped_loss(mdp, policy, n, case.target), every.bootstrapped_loss, case.counted),
        (theory.suffix_loss(mdp, policy, n, case.target), every.suffix_loss, case.reachable),
    ):
        assert exact(f, case.values) == pytest.approx(brute(f, case.values, case.target), rel=1e-10, abs=1e-10)
        minimiser = enumeration.numerical_minimiser(
            lambda g, brute=brute: brute(g, case.values, case.target), basis, policy.shape
        )
        # Differences of losses do not resolve what hardly weighs in them.
        seen = seen & (exact.weights[:, None] * policy > 1e-4)
        np.testing.assert_allclose(exact.best_advantages()[seen], minimiser[seen], atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 3), st.sampled_from([0.5, 0.9, 1.0]))
@settings(max_examples=25)
def test_monte_carlo_loss_equals_the_sum_over_all_episodes(seed: int, n: int, actions: int, gamma: float) -> None:
    """On a layered MDP every episode ends after two steps, so that all of them can be listed."""
    rng = np.random.default_rng(seed)
    layers, width = 2, 2
    states = layers * width + 1
    transition = np.zeros((states, actions, states))
    for layer in range(layers):
        here = range(width * layer, width * (layer + 1))
        there = range(width * (layer + 1), width * (layer + 2)) if layer < layers - 1 else [states - 1]
        for s in here:
            transition[s][:, list(there)] = rng.dirichlet(np.ones(len(there)), size=actions)
    transition[-1, :, -1] = 1
    reward = rng.normal(size=(states, actions))
    reward[-1] = 0
    mdp = FiniteMDP(transition, reward, np.r_[0.3, 0.7, np.zeros(states - 2)], gamma)
    policy = theory.random_policy(rng, mdp)
    loss = theory.monte_carlo_loss(mdp, policy, n)
    nothing = np.zeros(states)
    f = rng.normal(size=policy.shape)
    every = enumeration.Enumeration(mdp, policy, layers + 1)
    assert loss(f, nothing) == pytest.approx(every.monte_carlo_loss(f, n), rel=1e-10)
    minimiser = enumeration.numerical_minimiser(
        lambda g: every.monte_carlo_loss(g, n), centered_basis(policy), policy.shape
    )
    seen = theory.reachable(mdp, policy, n)
    np.testing.assert_allclose(minimiser[seen], theory.advantages(mdp, policy)[seen], atol=1e-9)
    np.testing.assert_allclose(loss.best_advantages()[seen], minimiser[seen], atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([0.0, 0.5, 0.99]))
def test_proposition_1_advantages_are_local_where_branches_merge(seed: int, k: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    mdp = theory.merging_mdp(rng, k, gamma=gamma)
    policy = theory.random_policy(rng, mdp)
    assert theory.merges(mdp, policy, k)[0]
    first = theory.expected_rewards(mdp, policy, k)
    assert_close(first[:1] - policy[0] @ first[0], theory.advantages(mdp, policy)[:1], np.ones((1, 3), bool))

    later = 1 + 3 * (k - 1)  # the states after the branches have merged
    changed = np.concatenate([policy[:later], theory.random_policy(rng, mdp)[later:]])
    assert_close(theory.advantages(mdp, changed)[:1], theory.advantages(mdp, policy)[:1], np.ones((1, 3), bool))


def test_merges_notices_branches_that_do_not_merge() -> None:
    rng = np.random.default_rng(0)
    mdp = theory.merging_mdp(rng, 3)
    policy = theory.random_policy(rng, mdp)
    assert not theory.merges(mdp, policy, 2)[0]
    assert theory.merges(mdp, policy, 3)[0]


def test_merges_asks_only_for_actions_that_the_policy_takes() -> None:
    mdp, _ = theory.impossibility_pair()
    assert not theory.merges(mdp, np.full((4, 2), 0.5), 1)[0]
    assert theory.merges(mdp, np.tile([1.0, 0.0], (4, 1)), 1)[0]


@pytest.mark.parametrize("up", [0.1, 0.5, 0.9])
def test_impossibility_same_rewards_and_next_advantages_but_other_advantages(up: float) -> None:
    papers, twin = theory.impossibility_pair()
    policy = np.tile([up, 1 - up], (4, 1))
    first, second = theory.advantages(papers, policy), theory.advantages(twin, policy)
    np.testing.assert_array_equal(papers.transition, twin.transition)
    np.testing.assert_array_equal(papers.reward[0], twin.reward[0])
    np.testing.assert_array_equal(first[1:], second[1:])
    np.testing.assert_allclose(first[0], [1 - up, -up])
    np.testing.assert_allclose(second[0], 0, atol=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_advantages_on_the_chain_have_the_papers_closed_form(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    best = rng.integers(2, size=length)
    mdp = theory.chain(length, best=best)
    policy = theory.random_policy(rng, mdp)
    walk = np.arange(length)
    closed = mdp.reward[:-1] - policy[walk, best][:, None]
    np.testing.assert_allclose(theory.advantages(mdp, policy)[:-1], closed, atol=TOLERANCE)
