"""The paper's losses as exact quadratic forms, and their minimisers over the π-centred functions.

Every loss here is E[(c − φ·Â − V̂(s_0))²], where φ(s, a) = Σ_t γ^t 1[s_t = s, a_t = a] counts discounted visits and c is
the return, or an n-step target. It is quadratic in the tables Â and V̂, with moments that follow from the occupancies:
no sampling, no truncation, no gradient descent.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dae.theory.exact import action_values, n_step_action_values, occupancies, state_values
from dae.theory.mdp import FiniteMDP, Floats


@dataclass(frozen=True)
class QuadraticLoss:
    """E[(c − φ·Â − V̂(s_0))²] as a function of the tables Â (S, A) and V̂ (S,)."""

    policy: Floats  # (S, A)
    visits: Floats  # (SA, SA): E[φ φᵀ]
    visits_target: Floats  # (SA,): E[c φ]
    visits_start: Floats  # (SA, S): E[φ 1[s_0]ᵀ]
    start: Floats  # (S,): E[1[s_0]]
    start_target: Floats  # (S,): E[c 1[s_0]]
    target_squared: float  # E[c²]

    def __call__(self, advantages: Floats, values: Floats) -> float:
        """Return the exact loss of two tables."""
        f = advantages.ravel()
        return float(
            self.target_squared
            + f @ self.visits @ f
            + values**2 @ self.start
            - 2 * f @ self.visits_target
            - 2 * values @ self.start_target
            + 2 * f @ self.visits_start @ values
        )

    def __add__(self, other: "QuadraticLoss") -> "QuadraticLoss":
        return QuadraticLoss(
            self.policy,
            self.visits + other.visits,
            self.visits_target + other.visits_target,
            self.visits_start + other.visits_start,
            self.start + other.start,
            self.start_target + other.start_target,
            self.target_squared + other.target_squared,
        )

    def best_advantages(self, values: Floats) -> Floats:
        """Return the π-centred Â (S, A) that minimises the loss for a fixed V̂; 0 on pairs that the loss never sees."""
        basis = centered_basis(self.policy)
        matrix = basis.T @ self.visits @ basis
        gradient = basis.T @ (self.visits_target - self.visits_start @ values)
        # Scaling to a unit diagonal keeps rarely visited states as accurate as frequent ones.
        scale = np.sqrt(np.diag(matrix))
        scale = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        solution = np.linalg.lstsq(scale[:, None] * matrix * scale, scale * gradient)[0]
        best: Floats = (basis @ (scale * solution)).reshape(self.policy.shape)
        return best

    def best_values(self, advantages: Floats) -> Floats:
        """Return the V̂ (S,) that minimises the loss for a fixed Â; 0 on states where no trajectory starts."""
        moment = self.start_target - advantages.ravel() @ self.visits_start
        return np.divide(moment, self.start, out=np.zeros_like(moment), where=self.start > 0)


def centered_basis(policy: Floats) -> Floats:
    """Return a basis (SA, D) of the functions with Σ_a π(a|s) f(s, a) = 0 that vanish where π does.

    Its columns are orthonormal under π. With u ⊥ √π(·|s), f = u/√π is π-centred.
    """
    states, actions = policy.shape
    columns = []
    for state in range(states):
        (taken,) = policy[state].nonzero()
        root = np.sqrt(policy[state, taken])
        complement = np.linalg.svd(root[None])[2][1:]
        for u in complement:
            column = np.zeros((states, actions))
            column[state, taken] = u / root
            columns.append(column.ravel())
    return np.array(columns).reshape(-1, states * actions).T


def bootstrapped_loss(mdp: FiniteMDP, policy: Floats, n: int, target: Floats) -> QuadraticLoss:
    """Return the loss of Theorem 2: E[(Σ_{t<n} γ^t (r_t − Â_t) + γ^n target(s_n) − V̂(s_0))²]."""
    squared = target**2
    value = target
    for _ in range(n):
        q = mdp.reward + mdp.gamma * mdp.transition @ value
        squared = _second_moment(mdp, policy, value, squared)
        value = (policy * q).sum(1)
    return _quadratic(
        mdp, policy, n, lambda t: n_step_action_values(mdp, policy, n - t, target), float(mdp.start @ squared)
    )


def monte_carlo_loss(mdp: FiniteMDP, policy: Floats, n: int) -> QuadraticLoss:
    """Return the loss of Theorem 1, E[(G(τ) − Σ_{t<n} γ^t Â_t)²], with G the whole, infinite return.

    It has no V̂: evaluate and minimise it with V̂ = 0.
    """
    live = ~mdp.absorbing
    constant = _second_moment(mdp, policy, state_values(mdp, policy), np.zeros(mdp.n_states))
    step = np.einsum("sa,sat->st", policy, mdp.transition)
    squared = np.zeros(mdp.n_states)
    squared[live] = np.linalg.solve(np.eye(live.sum()) - mdp.gamma**2 * step[np.ix_(live, live)], constant[live])
    q = action_values(mdp, policy)
    return _quadratic(mdp, policy, n, lambda _: q, float(mdp.start @ squared))


def suffix_loss(mdp: FiniteMDP, policy: Floats, n: int, target: Floats) -> QuadraticLoss:
    """Return the loss used in practice: Theorem 2's, summed over the suffixes of an n-step trajectory.

    L_A = E[ Σ_{t<n} ( Σ_{t'=t}^{n-1} γ^{t'-t} (r_t' − Â_t') + γ^{n-t} target(s_n) − V̂(s_t) )² ]
    """
    visited = occupancies(mdp, policy, n)
    losses = [
        bootstrapped_loss(FiniteMDP(mdp.transition, mdp.reward, visited[t], mdp.gamma), policy, n - t, target)
        for t in range(n)
    ]
    return sum(losses[1:], losses[0])


def theorem_2_weights(mdp: FiniteMDP, policy: Floats, n: int) -> Floats:
    """Return w_t(s) = γ^{2t} p(s_t = s), (n, S)."""
    discount = mdp.gamma ** (2 * np.arange(n))
    return discount[:, None] * occupancies(mdp, policy, n)


def suffix_weights(mdp: FiniteMDP, policy: Floats, n: int) -> Floats:
    """Return p(s_t = s) Σ_{i≤t} γ^{2i}, (n, S): a late step is part of every suffix that starts before it."""
    discount = (mdp.gamma ** (2 * np.arange(n))).cumsum()
    return discount[:, None] * occupancies(mdp, policy, n)


def theorem_2_advantages(mdp: FiniteMDP, policy: Floats, weights: Floats, target: Floats) -> Floats:
    """Return the closed form of Theorem 2, (S, A): a weighted mean of (n−t)-step advantages; NaN where no weight falls.

    `weights` (n, S) are `theorem_2_weights` or, for the loss used in practice, `suffix_weights`.
    """
    n = len(weights)
    total = np.zeros_like(policy)
    for t in range(n):
        q = n_step_action_values(mdp, policy, n - t, target)
        total += weights[t][:, None] * (q - (policy * q).sum(1, keepdims=True))
    weight = weights.sum(0)[:, None]
    mean: Floats = np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)
    return mean


def _second_moment(mdp: FiniteMDP, policy: Floats, value: Floats, squared: Floats) -> Floats:
    """Return E[(r + γX)²|s] of one step before X, given E[X|s'] and E[X²|s']."""
    ahead, ahead_squared = mdp.transition @ value, mdp.transition @ squared
    q_squared = mdp.reward**2 + 2 * mdp.gamma * mdp.reward * ahead + mdp.gamma**2 * ahead_squared
    moment: Floats = (policy * q_squared).sum(1)
    return moment


def _quadratic(
    mdp: FiniteMDP, policy: Floats, n: int, q_ahead: Callable[[int], Floats], target_squared: float
) -> QuadraticLoss:
    """Assemble the moments of E[(c − φ·Â − V̂(s_0))²] step by step.

    `q_ahead(t)` is E[c − Σ_{k<t} γ^k r_k | s_t, a_t] / γ^t, what the target still holds at step t.
    """
    pairs = mdp.n_states * mdp.n_actions
    step = np.einsum("sat,tb->satb", mdp.transition, policy).reshape(pairs, pairs)  # K[(s, a), (s', a')]
    visited = (occupancies(mdp, policy, n)[:, :, None] * policy).reshape(n, pairs)  # p(s_t, a_t)
    discount = mdp.gamma ** np.arange(n)

    visits, later = np.zeros((pairs, pairs)), np.zeros((pairs, pairs))  # later: Σ_{k=1}^{n-1-t} γ^k K^k
    for t in reversed(range(n)):
        joint = visited[t][:, None] * later
        visits += discount[t] ** 2 * (np.diag(visited[t]) + joint + joint.T)
        later = mdp.gamma * step @ (np.eye(pairs) + later)

    visits_target, visits_start = np.zeros(pairs), np.zeros((pairs, mdp.n_states))
    earned = np.zeros(pairs)  # E[Σ_{k<t} γ^k r_k 1[s_t, a_t]]
    from_start = np.einsum("sa,st->sat", policy, np.diag(mdp.start)).reshape(pairs, -1)  # p(s_t, a_t, s_0)
    for t in range(n):
        visits_target += discount[t] * (earned + discount[t] * visited[t] * q_ahead(t).ravel())
        visits_start += discount[t] * from_start
        earned = (earned + discount[t] * mdp.reward.ravel() * visited[t]) @ step
        from_start = step.T @ from_start
    return QuadraticLoss(
        policy=policy,
        visits=visits,
        visits_target=visits_target,
        visits_start=visits_start,
        start=mdp.start,
        start_target=mdp.start * (policy * q_ahead(0)).sum(1),
        target_squared=target_squared,
    )
