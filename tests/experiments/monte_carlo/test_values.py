"""Monte-Carlo Q, V and A against the exact ones of finite MDPs: no bias, and errors that are what they say.

A standardized error z = (estimate − exact) / error has mean 0 and deviation 1. Over n independent ones, the bounds of
`require_standard` are four standard deviations wide: right code would fail about once in 10,000 draws of its seeds.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest

from dae import theory
from dae.experiments.monte_carlo import ActionValues, Simulator, action_values
from dae.experiments.monte_carlo.values import Estimated
from dae.theory import FiniteMDP
from tests.finite import Floats, make_env, states_of, table_agent

LONG = 300  # no episode here is likely to be that long


class World(NamedTuple):
    mdp: FiniteMDP
    policy: Floats


def worlds() -> dict[str, World]:
    rng = np.random.default_rng(0)
    mdps = {"chain": theory.chain(6, gamma=0.9), "merging": theory.merging_mdp(rng, 2)}
    mdps |= {f"random {k}": theory.random_mdp(rng) for k in range(4)}
    return {name: World(mdp, theory.random_policy(rng, mdp, forbidden=0.1)) for name, mdp in mdps.items()}


WORLDS = worlds()


def estimate(world: World, *, horizon: int, rollouts: int, seed: int = 0, share: bool = False) -> ActionValues:
    """Estimate Q, V and A in all states but those where the episode is over."""
    env = make_env(world.mdp, 64)
    simulator = Simulator(table_agent(world.mdp, world.policy), env)
    states = [state for state, over in zip(states_of(env), world.mdp.absorbing, strict=True) if not over]
    return action_values(
        simulator,
        states,
        rollouts=rollouts,
        horizon=horizon,
        gamma=world.mdp.gamma,
        seed=seed,
        share_among_actions=share,
    )


def exact_values(world: World, horizon: int) -> tuple[Floats, Floats, Floats]:
    """Return Q, V and A of the first `horizon` rewards in the states that `estimate` visits."""
    q = theory.expected_rewards(world.mdp, world.policy, horizon)[~world.mdp.absorbing]
    v = (world.policy[~world.mdp.absorbing] * q).sum(1)
    return q, v, q - v[:, None]


def standardized(estimated: Estimated, exact: Floats) -> Floats:
    """Return z, flat; what has no error must be exact, as far as rewards and probabilities in single precision are."""
    sure = estimated.error < 1e-12
    np.testing.assert_allclose(estimated.mean[sure], exact[sure], rtol=0, atol=1e-6)
    return np.asarray(((estimated.mean - exact)[~sure] / estimated.error[~sure]).ravel())


def require_standard(z: Floats) -> None:
    n = len(z)
    assert n >= 20
    assert abs(z.mean()) < 4 / np.sqrt(n)
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * n)


def require_agreement(worlds: Iterable[World], *, horizon: int, share: bool, rollouts: int) -> None:
    """Estimates of all worlds, with random numbers of their own, agree with theory within their errors."""
    z: dict[str, list[Floats]] = {"q": [], "v": [], "advantages": []}
    for seed, world in enumerate(worlds):
        estimated = estimate(world, horizon=horizon, share=share, rollouts=rollouts, seed=seed)
        np.testing.assert_allclose(estimated.probabilities, world.policy[~world.mdp.absorbing], atol=1e-6)
        for (name, found), truth in zip(z.items(), exact_values(world, horizon), strict=True):
            one: Estimated = getattr(estimated, name)
            if name == "advantages" or (name == "q" and share):  # those of a state's actions depend on each other
                one, truth = Estimated(one.samples[:, 0]), truth[:, 0]
            found.append(standardized(one, truth))
    for found in z.values():
        require_standard(np.concatenate(found))


@pytest.mark.parametrize(("horizon", "share"), [(3, False), (LONG, False), (LONG, True)])
def test_estimates_agree_with_theory_within_their_errors(horizon: int, share: bool) -> None:
    require_agreement(WORLDS.values(), horizon=horizon, share=share, rollouts=50)


@pytest.mark.slow
@pytest.mark.parametrize("share", [False, True])
def test_many_estimates_agree_with_theory_within_their_errors(share: bool) -> None:
    rng = np.random.default_rng(1)
    mdps = [theory.random_mdp(rng, n_states=8, n_actions=4) for _ in range(20)]
    worlds = (World(mdp, theory.random_policy(rng, mdp)) for mdp in mdps)
    require_agreement(worlds, horizon=20, share=share, rollouts=100)


def test_with_a_long_horizon_these_are_the_values_of_the_policy() -> None:
    for world in WORLDS.values():
        long = theory.expected_rewards(world.mdp, world.policy, LONG)
        np.testing.assert_allclose(long, theory.action_values(world.mdp, world.policy), atol=1e-9)


def test_v_is_centred_on_the_policy_that_acts() -> None:
    estimated = estimate(WORLDS["random 0"], horizon=LONG, rollouts=5)
    np.testing.assert_allclose((estimated.probabilities * estimated.advantages.mean).sum(1), 0, atol=1e-6)
    np.testing.assert_allclose(estimated.q.mean - estimated.v.mean[:, None], estimated.advantages.mean, atol=1e-12)


def test_errors_are_those_of_independent_means() -> None:
    samples = np.random.default_rng(0).normal(size=(2, 7))
    np.testing.assert_allclose(Estimated(samples).error ** 2, [np.var(row, ddof=1) / 7 for row in samples])
    assert np.isnan(Estimated(samples[:, :1]).error).all()


def test_errors_shrink_where_actions_share_their_random_numbers() -> None:
    world = WORLDS["chain"]  # both actions lead to the same state: with the same random numbers, to the same future
    apart, shared = (estimate(world, horizon=LONG, share=share, rollouts=20) for share in (False, True))
    assert (apart.advantages.error[:-1] > 0.01).all()
    assert (shared.advantages.error < 1e-12).all()
    np.testing.assert_allclose(shared.advantages.mean, exact_values(world, LONG)[2], atol=1e-6)
    assert (shared.q.error[:-1] > 0.01).all()


@pytest.mark.parametrize("share", [False, True])
def test_differences_of_policies_that_share_a_seed(share: bool) -> None:
    z, errors, if_independent = [], [], []
    for seed, old in enumerate(list(WORLDS.values())[1:]):
        new = World(old.mdp, 0.5 * old.policy + 0.5 * theory.random_policy(np.random.default_rng(5), old.mdp))
        after, before = (
            estimate(world, horizon=4, seed=seed, share=share, rollouts=50).advantages for world in (new, old)
        )
        difference, exact = after - before, exact_values(new, 4)[2] - exact_values(old, 4)[2]
        z.append(standardized(Estimated(difference.samples[:, 0]), exact[:, 0]))
        errors.append(difference.error.mean())
        if_independent.append(np.hypot(after.error, before.error).mean())
    require_standard(np.concatenate(z))
    assert np.mean(errors) < 0.8 * np.mean(if_independent), "noise that both have cancels"


def test_nothing_is_left_to_chance_where_world_and_policy_are_certain() -> None:
    mdp = theory.chain(5, gamma=0.9, best=np.array([0, 1, 1, 0, 1]))
    world = World(mdp, np.eye(2)[[0, 0, 1, 1, 1, 0]])
    estimated = estimate(world, horizon=4, rollouts=3)
    for one, exact in zip((estimated.q, estimated.v, estimated.advantages), exact_values(world, 4), strict=True):
        assert (one.error == 0).all()
        np.testing.assert_allclose(one.mean, exact, atol=1e-12)
