"""Exact values, advantages and occupancies of a policy, and Proposition 1."""

import numpy as np

from dae.errors import InvalidValue
from dae.theory.mdp import FiniteMDP, Flags, Floats, require_policy, require_states, require_steps


def state_values(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return V^π, (S,): the solution of V = Σ_a π (r + γ P V), with V = 0 where an episode is over."""
    require_policy(mdp, policy)
    live = ~mdp.absorbing
    step = np.einsum("sa,sat->st", policy, mdp.transition)
    if mdp.gamma == 1 and not _ends(step, mdp.absorbing).all():
        raise InvalidValue("gamma is 1 and some state never ends its episode: its value is infinite; choose gamma < 1")
    values = np.zeros(mdp.n_states)
    system = np.eye(live.sum()) - mdp.gamma * step[np.ix_(live, live)]
    values[live] = np.linalg.solve(system, (policy * mdp.reward).sum(1)[live])
    return values


def _ends(step: Floats, absorbing: Flags) -> Flags:
    """Mark the states from which an absorbing state can be reached."""
    ends = absorbing
    for _ in range(len(step)):
        ends = ends | (step[:, ends] > 0).any(1)
    return ends


def action_values(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return Q^π = r + γ P V^π, (S, A)."""
    return mdp.reward + mdp.gamma * mdp.transition @ state_values(mdp, policy)


def advantages(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return A^π = Q^π − V^π, (S, A)."""
    return action_values(mdp, policy) - state_values(mdp, policy)[:, None]


def n_step_action_values(mdp: FiniteMDP, policy: Floats, n: int, target: Floats) -> Floats:
    """Return E[r_0 + … + γ^{n-1} r_{n-1} + γ^n target(s_n) | s_0 = s, a_0 = a], (S, A)."""
    require_policy(mdp, policy)
    require_steps(n)
    require_states("target", mdp, target)
    q = mdp.reward + mdp.gamma * mdp.transition @ target
    for _ in range(n - 1):
        q = mdp.reward + mdp.gamma * mdp.transition @ (policy * q).sum(1)
    return q


def occupancies(mdp: FiniteMDP, policy: Floats, n: int) -> Floats:
    """Return p(s_t = s) for t = 0, …, n − 1, (n, S)."""
    require_policy(mdp, policy)
    require_steps(n)
    step = np.einsum("sa,sat->st", policy, mdp.transition)
    rows = [mdp.start]
    for _ in range(n - 1):
        rows.append(rows[-1] @ step)
    return np.array(rows)


def reachable(mdp: FiniteMDP, policy: Floats, n: int) -> Flags:
    """Mark the pairs with p(s_t = s, a_t = a) > 0 for some t < n, (S, A).

    Follows the arrows of the MDP, not its probabilities, so that a rare pair is not lost to rounding.
    """
    require_policy(mdp, policy)
    require_steps(n)
    arrows: Flags = np.logical_or.reduce((policy[:, :, None] > 0) & (mdp.transition > 0), axis=1)
    now: Flags = mdp.start > 0
    seen = now
    for _ in range(n - 1):
        now = now @ arrows
        seen = seen | now
    return seen[:, None] & (policy > 0)


def expected_rewards(mdp: FiniteMDP, policy: Floats, k: int) -> Floats:
    """Return E[r_0 + … + γ^{k-1} r_{k-1} | s_0 = s, a_0 = a], (S, A): the first k rewards alone."""
    return n_step_action_values(mdp, policy, k, np.zeros(mdp.n_states))


def merges(mdp: FiniteMDP, policy: Floats, k: int, tolerance: float = 1e-10) -> Flags:
    """Mark the states where E[V(s_k) | s_0, a_0] is the same for all actions the policy takes, (S,).

    There Proposition 1 holds: A(s, a) = E[first k rewards | s, a] − E[first k rewards | s]. Differences are tolerated
    relative to the largest value.
    """
    without_rewards = FiniteMDP(mdp.transition, np.zeros_like(mdp.reward), mdp.start, 1.0)
    values = state_values(mdp, policy)
    ahead = n_step_action_values(without_rewards, policy, k, values)
    taken = np.where(policy > 0, ahead, np.nan)
    same: Flags = np.nanmax(taken, 1) - np.nanmin(taken, 1) <= tolerance * np.abs(values).max()
    return same
