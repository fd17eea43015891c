"""The two halves meet: minimising `dae_loss` on sampled data approaches the exact answer, at the statistical rate.

`dae_loss` is quadratic in tables Â and V̂, so its exact minimiser is one Newton step away: no optimiser blurs it.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dae import center, dae_loss, theory
from dae.core import monte_carlo_dae_loss
from dae.theory import FiniteMDP
from dae.theory.mdp import Floats, Trajectories


def minimise(loss: Callable[[Tensor], Tensor], size: int) -> Tensor:
    """Return the minimum-norm minimiser of a quadratic function."""
    zero = torch.zeros(size, dtype=torch.float64)
    gradient = torch.func.grad(loss)(zero)
    hessian = torch.func.jacrev(torch.func.grad(loss))(zero)
    return -torch.linalg.pinv(hessian, hermitian=True, rtol=1e-12) @ gradient


def learned_advantages(mdp: FiniteMDP, policy: Floats, data: Trajectories, target: Floats) -> Floats:
    """Fit tables of Â and V̂ to sampled trajectories with `dae_loss`."""
    states, actions = mdp.reward.shape
    probs = torch.tensor(policy)
    s, a, successor = (torch.tensor(x) for x in (data.states, data.actions, data.next_states))
    terminated = torch.tensor(data.terminated)

    def loss(tables: Tensor) -> Tensor:
        f, v = tables[: states * actions].reshape(states, actions), tables[states * actions :]
        return dae_loss(
            torch.tensor(data.rewards),
            center(f, probs)[s, a],
            v[s],
            bootstrap=torch.tensor(target)[successor],
            terminated=terminated,
            truncated=torch.zeros_like(terminated),
            gamma=mdp.gamma,
        )

    tables = minimise(loss, states * actions + states)
    return center(tables[: states * actions].reshape(states, actions), probs).numpy()


def errors_by_sample_size(mdp: FiniteMDP, policy: Floats, n: int, target: Floats, exact: Floats) -> Floats:
    """Return the root mean squared error over reachable pairs and 12 data sets for 100, 1600 and 25600 rows."""
    rng = np.random.default_rng(1)
    seen = theory.reachable(mdp, policy, n)
    result = []
    for n_rows in (100, 1600, 25600):
        squared = [
            np.mean((learned_advantages(mdp, policy, data, target) - exact)[seen] ** 2)
            for data in (theory.sample(mdp, policy, n_rows=n_rows, n_steps=n, rng=rng) for _ in range(12))
        ]
        result.append(np.sqrt(np.mean(squared)))
    return np.array(result)


def assert_falls_like_one_over_root_n(errors: Floats) -> None:
    """From 100 to 25600 rows the error must fall sixteenfold."""
    slope = np.polyfit(np.log([100, 1600, 25600]), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4, errors
    assert errors[-1] < 0.05, errors


def test_with_true_bootstrap_values_the_learned_advantage_approaches_the_true_one() -> None:
    rng = np.random.default_rng(0)
    mdp = theory.random_mdp(rng, n_states=5, n_actions=2, absorbing=1, unreachable=0, gamma=0.9)
    policy = theory.random_policy(rng, mdp)
    errors = errors_by_sample_size(
        mdp, policy, 6, theory.state_values(mdp, policy), theory.advantages(mdp, policy) * ~mdp.absorbing[:, None]
    )
    assert_falls_like_one_over_root_n(errors)


def test_with_any_bootstrap_values_the_learned_advantage_approaches_the_exact_minimiser() -> None:
    rng = np.random.default_rng(0)
    mdp = theory.random_mdp(rng, n_states=4, n_actions=2, absorbing=0, unreachable=0, gamma=0.9)
    policy = theory.random_policy(rng, mdp)
    target = 5 * rng.normal(size=4)
    exact = theory.suffix_loss(mdp, policy, 5, target).best_advantages()
    assert np.abs(exact - theory.advantages(mdp, policy)).max() > 0.1  # a wrong target shows
    assert_falls_like_one_over_root_n(errors_by_sample_size(mdp, policy, 5, target, exact))


def test_dae_loss_on_samples_is_the_exact_loss_on_average() -> None:
    rng = np.random.default_rng(3)
    n = 5
    mdp = theory.random_mdp(rng, n_states=4, n_actions=3, absorbing=0, unreachable=0)
    policy = theory.random_policy(rng, mdp)
    target, v, f = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(4, 3))
    data = theory.sample(mdp, policy, n_rows=200_000, n_steps=n, rng=rng)
    never = torch.zeros(data.states.shape, dtype=torch.bool)
    loss = dae_loss(
        torch.tensor(data.rewards),
        torch.tensor(f[data.states, data.actions]),
        torch.tensor(v[data.states]),
        bootstrap=torch.tensor(target[data.next_states]),
        terminated=never,
        truncated=never,
        gamma=mdp.gamma,
    )
    exact = theory.suffix_loss(mdp, policy, n, target)(f, v) / n
    assert abs(loss.item() / exact - 1) < 0.01


def test_monte_carlo_dae_needs_no_value_function() -> None:
    """On whole episodes the loss of Theorem 1 alone finds the advantages of the chain."""
    rng = np.random.default_rng(0)
    mdp = theory.chain(4, best=np.array([0, 1, 1, 0]))
    policy = theory.random_policy(rng, mdp)
    data = theory.sample(mdp, policy, n_rows=500, n_steps=4, rng=rng)
    s, a, terminated = torch.tensor(data.states), torch.tensor(data.actions), torch.tensor(data.terminated)
    probs = torch.tensor(policy)
    offset = torch.tensor(mdp.start @ theory.state_values(mdp, policy))

    def loss(table: Tensor) -> Tensor:
        advantages = center(table.reshape(5, 2), probs)[s, a]
        rewards = torch.tensor(data.rewards)
        rewards[:, 0] -= offset  # a known mean return leaves the minimiser in place and the residual at zero
        return monte_carlo_dae_loss(
            rewards, advantages, terminated=terminated, truncated=torch.zeros_like(terminated), gamma=mdp.gamma
        )

    learned = center(minimise(loss, 10).reshape(5, 2), probs)
    np.testing.assert_allclose(learned[:4], theory.advantages(mdp, policy)[:4], atol=1e-9)
