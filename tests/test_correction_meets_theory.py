"""The correction of DAE, on finite MDPs: GAE's expectation for any centred Â, and no noise with the right one."""

from typing import Any

import numpy as np
import pytest
import torch

from dae import gae, theory
from dae.core import advantage_residuals
from dae.theory import FiniteMDP
from dae.theory.mdp import Floats
from tests.theory.enumeration import trajectories

STEPS = 4


def rows(mdp: FiniteMDP, policy: Floats, values: Floats) -> tuple[Floats, Any, dict[str, Any]]:
    """Return the probability of every trajectory, its states and actions, and what `gae` needs of it."""
    every = list(trajectories(mdp, policy, STEPS))
    steps = np.array([steps for _, steps, _ in every])
    states, actions = steps[..., 0], steps[..., 1]
    successors = np.concatenate([states[:, 1:], np.array([[last] for _, _, last in every])], 1)
    data = {
        "rewards": torch.tensor(mdp.reward[states, actions]),
        "values": torch.tensor(values[states]),
        "bootstrap": torch.tensor(values[successors]),
        "terminated": torch.tensor(mdp.absorbing[successors]),
        "truncated": torch.zeros(states.shape, dtype=torch.bool),
    }
    return np.array([p for p, _, _ in every]), (states, actions), data


def corrected(taken: Floats, data: dict[str, Any], gamma: float, lam: float) -> Floats:
    residuals = advantage_residuals(advantages=torch.tensor(taken), **data, gamma=gamma, lam=lam)
    return taken + residuals.numpy()


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_for_any_centred_advantages_and_values_the_expectation_is_that_of_gae(seed: int, lam: float) -> None:
    rng = np.random.default_rng(seed)
    mdp = theory.random_mdp(rng, n_states=4, n_actions=3)
    policy = theory.random_policy(rng, mdp)
    f, values = rng.normal(size=mdp.reward.shape), rng.normal(size=mdp.n_states)
    any_centred = f - (policy * f).sum(1, keepdims=True)
    chances, (states, actions), data = rows(mdp, policy, values)
    ours = corrected(any_centred[states, actions], data, mdp.gamma, lam)[:, 0]
    theirs = gae(**data, gamma=mdp.gamma, lam=lam)[0].numpy()[:, 0]
    differs = False
    for pair in {*zip(states[:, 0].tolist(), actions[:, 0].tolist(), strict=True)}:
        here = (states[:, 0] == pair[0]) & (actions[:, 0] == pair[1])
        np.testing.assert_allclose(
            np.average(ours[here], weights=chances[here]),
            np.average(theirs[here], weights=chances[here]),
            rtol=0,
            atol=1e-12,
        )
        differs |= not np.allclose(ours[here], theirs[here])
    assert differs == (lam > 0), "single estimates differ, or the test shows nothing"


@pytest.mark.parametrize("lam", [0.5, 1.0])
def test_with_the_true_functions_of_a_deterministic_mdp_there_is_no_noise(lam: float) -> None:
    rng = np.random.default_rng(0)
    mdp = theory.random_mdp(rng, n_states=5, n_actions=3)
    goals = mdp.transition.argmax(-1)
    mdp = FiniteMDP(np.eye(5)[goals], mdp.reward, mdp.start, mdp.gamma)
    policy = theory.random_policy(rng, mdp)
    exact, values = theory.advantages(mdp, policy), theory.state_values(mdp, policy)
    _, (states, actions), data = rows(mdp, policy, values)
    ours = corrected(exact[states, actions], data, mdp.gamma, lam)
    np.testing.assert_allclose(ours, exact[states, actions], rtol=0, atol=1e-10)
    theirs = gae(**data, gamma=mdp.gamma, lam=lam)[0].numpy()
    assert np.abs(theirs - exact[states, actions]).max() > 0.1, "GAE has the noise of later actions"
