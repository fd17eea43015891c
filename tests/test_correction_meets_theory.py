"""The correction of DAE, on finite MDPs: GAE's expectation for any centred Â, and no noise with the right one."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from dae import gae, theory
from dae.agent.actions import Choices
from dae.agent.estimators import make_estimator
from dae.core import later_advantages
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


def corrected(taken: Floats, data: dict[str, Any], gamma: float, lam: float, weight: float = 1.0) -> Floats:
    ends = {"terminated": data["terminated"], "truncated": data["truncated"]}
    later = later_advantages(torch.tensor(taken), **ends, gamma=gamma, lam=lam)
    estimates, _ = gae(**data, gamma=gamma, lam=lam)
    return (estimates - weight * later).numpy()


def test_the_sum_over_later_actions_is_what_it_says() -> None:
    rng = np.random.default_rng(0)
    taken = rng.normal(size=(3, 6))
    ends = np.zeros((3, 6), bool)
    ends[0, 2] = ends[1, 4] = True
    expected = np.zeros((3, 6))
    for b, t in np.ndindex(3, 6):
        for k in range(1, 6 - t):
            if ends[b, t : t + k].any():
                break
            expected[b, t] += (0.9 * 0.8) ** k * taken[b, t + k]
    flags = {"terminated": torch.tensor(ends), "truncated": torch.zeros(3, 6, dtype=torch.bool)}
    found = later_advantages(torch.tensor(taken), **flags, gamma=0.9, lam=0.8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", [0.3, 1.0])
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_for_any_centred_advantages_and_values_the_expectation_is_that_of_gae(
    seed: int, lam: float, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    mdp = theory.random_mdp(rng, n_states=4, n_actions=3)
    policy = theory.random_policy(rng, mdp)
    f, values = rng.normal(size=mdp.reward.shape), rng.normal(size=mdp.n_states)
    any_centred = f - (policy * f).sum(1, keepdims=True)
    chances, (states, actions), data = rows(mdp, policy, values)
    ours = corrected(any_centred[states, actions], data, mdp.gamma, lam, weight)[:, 0]
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


@pytest.mark.parametrize(
    ("quality", "low", "high"), [("true", 1 - 1e-9, 1.0), ("random", 0.0, 0.1), ("too large", 0.2, 0.4)]
)
def test_a_control_variate_weighs_as_much_as_it_explains(quality: str, low: float, high: float) -> None:
    """The true Â of a deterministic MDP explains all noise; a random one none; one three times too large, a third."""
    rng = np.random.default_rng(1)
    mdp = theory.random_mdp(rng, n_states=5, n_actions=3)
    mdp = FiniteMDP(np.eye(5)[mdp.transition.argmax(-1)], mdp.reward, mdp.start, mdp.gamma)
    policy = theory.random_policy(rng, mdp)
    exact, values = theory.advantages(mdp, policy), theory.state_values(mdp, policy)
    head = {"true": exact, "random": 5 * rng.normal(size=exact.shape), "too large": 3 * exact}[quality]
    n, steps = 200, 40
    states, actions = np.zeros((n, steps + 1), int), np.zeros((n, steps), int)
    states[:, 0] = rng.choice(5, size=n, p=mdp.start)
    for t in range(steps):
        chance = rng.random(n)[:, None]
        actions[:, t] = (policy[states[:, t]].cumsum(1) < chance).sum(1).clip(0, 2)
        states[:, t + 1] = mdp.transition[states[:, t], actions[:, t]].argmax(-1)
    never = torch.zeros(n, steps, dtype=torch.bool)
    rollout = SimpleNamespace(
        critic=torch.tensor(head[states[:, :-1]]),
        log_probs=torch.tensor(np.log(policy[states[:, :-1]])),
        actions=torch.tensor(actions),
        rewards=torch.tensor(mdp.reward[states[:, :-1], actions]),
        values=torch.tensor(values[states[:, :-1]]),
        bootstrap=torch.tensor(values[states[:, 1:]]),
        terminated=never,
        truncated=never,
    )
    estimator = make_estimator("dae")
    estimator.configure(gamma=mdp.gamma, lam=0.95, choices=Choices((3,)))
    estimator.correction = 1.0
    estimator.prepare(rollout)  # type: ignore[arg-type]
    assert low <= float(estimator.control_weight) <= high
    if quality == "true":
        known = torch.tensor(values[states[:, 1:]])
        torch.testing.assert_close(rollout.bootstrap, known, rtol=0, atol=1e-9)  # true values need no correction
        np.testing.assert_allclose(rollout.advantages, exact[states[:, :-1], actions], rtol=0, atol=1e-9)
