"""Finite MDPs: what they refuse, and that samples follow them."""

from typing import Any

import numpy as np
import pytest

from dae import theory
from dae.theory import FiniteMDP


def two_states() -> FiniteMDP:
    transition = np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    return FiniteMDP(transition, np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([1.0, 0.0]), 0.5)


def test_values_by_hand() -> None:
    policy = np.array([[0.5, 0.5], [0.5, 0.5]])
    # V = ½(1 + ½·¼V) + ½(2 + ½V), so V = 1.5 / (1 − 1/16 − 1/4)
    value = 1.5 / (1 - 1 / 16 - 1 / 4)
    np.testing.assert_allclose(theory.state_values(two_states(), policy), [value, 0])
    np.testing.assert_allclose(theory.action_values(two_states(), policy)[0], [1 + value / 8, 2 + value / 2])
    np.testing.assert_allclose(theory.occupancies(two_states(), policy, 3)[2], [0.625**2, 1 - 0.625**2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": np.ones((2, 2, 2))}, "transition is not a distribution"),
        ({"transition": np.ones((2, 2))}, r"transition has shape \(2, 2\): it must be \(2, 2, 2\)"),
        ({"start": np.array([1.0])}, r"start has shape \(1,\)"),
        ({"start": np.array([1.5, -0.5])}, "start is not a distribution"),
        ({"start": np.array([np.nan, 1.0])}, "start is not a distribution"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"reward": np.zeros(2)}, r"reward has shape \(2,\)"),
        ({"reward": np.full((2, 2), np.nan)}, "with finite entries"),
    ],
)
def test_an_mdp_that_is_none_is_refused(change: dict[str, object], message: str) -> None:
    mdp = two_states()
    fields = {"transition": mdp.transition, "reward": mdp.reward, "start": mdp.start, "gamma": mdp.gamma}
    with pytest.raises(ValueError, match=message):
        FiniteMDP(**(fields | change))  # type: ignore[arg-type]


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="policy is not a distribution"):
        theory.state_values(two_states(), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"policy has shape \(2, 3\)"):
        theory.state_values(two_states(), np.full((2, 3), 1 / 3))


def test_an_undiscounted_endless_episode_is_refused() -> None:
    """State 0 goes round for ever, state 1 ends."""
    endless = FiniteMDP(np.eye(2)[:, None, :], np.array([[1.0], [0.0]]), np.array([0.5, 0.5]), 1.0)
    with pytest.raises(ValueError, match="never ends"):
        theory.state_values(endless, np.ones((2, 1)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, p: theory.occupancies(m, p, 0), "n is 0: it must be at least 1"),
        (lambda m, p: theory.reachable(m, p, 0), "n is 0"),
        (lambda m, p: theory.suffix_loss(m, p, 0, np.zeros(2)), "n is 0"),
        (lambda m, p: theory.monte_carlo_loss(m, p, 0), "n is 0"),
        (lambda m, p: theory.bootstrapped_loss(m, p, 1, np.zeros(3)), r"target has shape \(3,\): it must be \(2,\)"),
        (lambda m, p: theory.n_step_action_values(m, p, 1, np.zeros((2, 1))), r"target has shape \(2, 1\)"),
        (lambda m, p: theory.reachable(m, 2 * p, 1), "policy is not a distribution"),
        (lambda m, p: theory.merging_mdp(np.random.default_rng(0), 0), "k is 0"),
        (lambda m, p: theory.random_mdp(np.random.default_rng(0), n_states=2), "at least one ordinary state"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(two_states(), np.full((2, 2), 0.5))


def test_random_mdps_and_policies_keep_their_promises() -> None:
    """The theorem tests lean on them for sparse, absorbing and unreachable states and for actions never taken."""
    shares = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        mdp = theory.random_mdp(rng, n_states=9, n_actions=3, branching=2, absorbing=2, unreachable=3)
        assert ((mdp.transition > 0).sum(-1) <= 2).all()
        assert (mdp.transition > 0).any(-1).all()
        np.testing.assert_array_equal(mdp.absorbing, np.arange(9) >= 7)
        assert (mdp.transition[:, :, 4:7] == 0).all()
        assert (mdp.start[4:] == 0).all()
        free, limited = theory.random_policy(rng, mdp), theory.random_policy(rng, mdp, forbidden=0.5)
        assert (free > 0).all()
        shares.append((limited == 0).mean())
    assert 0.25 < np.mean(shares) < 0.42  # half, less the one action that every state keeps


def test_reachability_follows_arrows_not_probabilities() -> None:
    mdp = theory.chain(3)
    policy = np.tile([1.0, 0.0], (4, 1))
    expected = np.array([[True, False], [True, False], [False, False], [False, False]])
    np.testing.assert_array_equal(theory.reachable(mdp, policy, 2), expected)


def test_samples_follow_the_mdp() -> None:
    rng = np.random.default_rng(0)
    mdp = theory.random_mdp(rng, n_states=6, absorbing=1, unreachable=1)
    policy = theory.random_policy(rng, mdp)
    data = theory.sample(mdp, policy, n_rows=20_000, n_steps=4, rng=rng)

    counts = np.zeros_like(mdp.transition)
    np.add.at(counts, (data.states, data.actions, data.next_states), 1)
    visits = counts.sum(2)
    often = visits > 1000
    assert often.sum() >= 6
    np.testing.assert_allclose((counts / visits.clip(1)[:, :, None])[often], mdp.transition[often], atol=0.05)
    starts = np.bincount(data.states[:, 0], minlength=6) / 20_000
    np.testing.assert_allclose(starts, mdp.start, atol=0.02)

    np.testing.assert_array_equal(data.rewards, mdp.reward[data.states, data.actions])
    np.testing.assert_array_equal(data.terminated, mdp.absorbing[data.next_states])
    going_on = ~data.terminated[:, :-1]
    np.testing.assert_array_equal(data.states[:, 1:][going_on], data.next_states[:, :-1][going_on])
    assert (mdp.start[data.states[:, 1:][~going_on]] > 0).all()
    assert data.terminated.any()
