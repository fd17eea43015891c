"""A worked case as text: the theorems, in numbers, on one small random MDP."""

from dataclasses import dataclass

import numpy as np

from dae.rules import COUNT, NOT_NEGATIVE, ruled
from dae.theory.exact import action_values, advantages, expected_rewards, merges, reachable, state_values
from dae.theory.examples import impossibility_pair, merging_mdp, random_mdp, random_policy
from dae.theory.losses import (
    bootstrapped_loss,
    monte_carlo_loss,
    suffix_loss,
    suffix_weights,
    theorem_2_advantages,
    theorem_2_weights,
)
from dae.theory.mdp import FiniteMDP, Floats


@dataclass(frozen=True)
class WorkedCase:
    """Print a worked case: what the paper's losses converge to on a random finite MDP.

    dae theory
    dae theory --seed 1 --gamma 0.5
    """

    states: int = 5
    """States of the MDP; the last ends an episode and the one before it cannot be reached."""
    actions: int = 2
    """Actions in each state."""
    gamma: float = 0.9
    """Discount factor."""
    steps: int = ruled(3, COUNT)
    """Backup horizon n of the losses."""
    seed: int = ruled(0, NOT_NEGATIVE)
    """Seed of the random MDP, policy and bootstrap target."""


def print_worked_case(case: WorkedCase) -> int:
    """Print the worked case as a text of four short sections."""
    rng = np.random.default_rng(case.seed)
    mdp = random_mdp(rng, n_states=case.states, n_actions=case.actions, gamma=case.gamma)
    policy = random_policy(rng, mdp)
    target = rng.normal(size=case.states) * ~mdp.absorbing
    print(_advantages(mdp, policy, case.steps, target), _variance(mdp, policy), sep="\n\n", end="\n\n")
    print(_locality(rng, case.gamma), _impossibility(), sep="\n\n")
    return 0


def _advantages(mdp: FiniteMDP, policy: Floats, n: int, target: Floats) -> str:
    exact = advantages(mdp, policy)
    theorem_1 = monte_carlo_loss(mdp, policy, n).best_advantages()
    theorem_2 = bootstrapped_loss(mdp, policy, n, target).best_advantages()
    practice = suffix_loss(mdp, policy, n, target).best_advantages()
    value, q = state_values(mdp, policy), action_values(mdp, policy)
    seen = reachable(mdp, policy, n)
    counted = reachable(mdp, policy, n if mdp.gamma > 0 else 1)  # step t weighs γ^t in the theorems' losses
    lines = [
        f"1. What the losses converge to (n = {n}, gamma = {mdp.gamma:g}, arbitrary bootstrap target)",
        "",
        "   s  a     pi       V       Q       A | Theorem 1 Theorem 2 in practice",
    ]
    for s, a in np.ndindex(policy.shape):
        columns = ((theorem_1, counted), (theorem_2, counted), (practice, seen))
        learned = [f"{np.round(x[s, a], 4) + 0.0:9.4f}" if known[s, a] else f"{'-':>9}" for x, known in columns]
        lines.append(
            f"  {s:2d} {a:2d} {policy[s, a]:6.3f} {value[s]:7.3f} {q[s, a]:7.3f} {exact[s, a]:7.3f} |"
            f" {learned[0]} {learned[1]} {learned[2]}"
        )
    closed_2 = theorem_2_advantages(mdp, policy, theorem_2_weights(mdp, policy, n), target)
    closed_practice = theorem_2_advantages(mdp, policy, suffix_weights(mdp, policy, n), target)
    lines += [
        "",
        "   A pair that the loss does not see shows '-'. Largest deviation over the others:",
        f"   Theorem 1 from A {_gap(theorem_1, exact, counted)},"
        f" Theorem 2 from its closed form {_gap(theorem_2, closed_2, counted)},"
        f" in practice from its closed form {_gap(practice, closed_practice, seen)}.",
    ]
    return "\n".join(lines)


def _variance(mdp: FiniteMDP, policy: Floats) -> str:
    without_skill = FiniteMDP(mdp.transition, mdp.reward - advantages(mdp, policy), mdp.start, mdp.gamma)
    mean = mdp.start @ state_values(mdp, policy)
    before, after = (monte_carlo_loss(m, policy, 1).target_squared - mean**2 for m in (mdp, without_skill))
    return "\n".join(
        [
            "2. The advantages remove from the return all variance that the actions cause",
            "",
            f"   Var[G] = {before:.4f}; Var[G - sum of gamma^t A_t] = {after:.4f}: the luck of start and transitions.",
        ]
    )


def _locality(rng: np.random.Generator, gamma: float) -> str:
    k = 2
    mdp = merging_mdp(rng, k, gamma=gamma)
    policy = random_policy(rng, mdp)
    first = expected_rewards(mdp, policy, k)
    local = first[0] - policy[0] @ first[0]
    exact = advantages(mdp, policy)[0]
    return "\n".join(
        [
            f"3. Proposition 1: branches that merge after {k} steps (condition holds: {merges(mdp, policy, k)[0]})",
            "",
            f"   A(s0, .) from all rewards:         {_row(exact)}",
            f"   A(s0, .) from the first {k} rewards: {_row(local)}",
        ]
    )


def _impossibility() -> str:
    papers, twin = impossibility_pair()
    policy = np.full(papers.reward.shape, 0.5)
    first, second = advantages(papers, policy), advantages(twin, policy)
    return "\n".join(
        [
            "4. Advantages cannot be bootstrapped: two MDPs that look alike from state 0",
            "",
            f"   rewards at 0:          {_row(papers.reward[0])} and {_row(twin.reward[0])}",
            f"   advantages at 1 and 2: {_row(first[1:3].ravel())} and {_row(second[1:3].ravel())}",
            f"   advantages at 0:       {_row(first[0])} and {_row(second[0])}",
        ]
    )


def _gap(learned: Floats, exact: Floats, seen: np.ndarray) -> str:
    return f"{np.abs(learned - exact)[seen].max():.0e}"


def _row(numbers: Floats) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in numbers + 0.0) + ")"
