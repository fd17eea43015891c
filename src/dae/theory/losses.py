"""The paper's losses as exact quadratic forms, and their minimisers over the π-centred functions.

Every loss here is E[(c − φ·Â − V̂(s_0))²], where φ(s, a) = Σ_t γ^t 1[s_t = s, a_t = a] counts discounted visits and c is
the return, or an n-step target. It is quadratic in the tables Â and V̂, with moments that follow from the occupancies:
no sampling, no truncation, no gradient descent.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from dae.theory.exact import action_values, n_step_action_values, occupancies, state_values
from dae.theory.mdp import FiniteMDP, Floats, require_states


@dataclass(frozen=True, eq=False)
class QuadraticLoss:
    """E[(c − φ·Â − V̂(s_0))²] as a function of the tables Â (S, A) and V̂ (S,).

    What lies before step t (the start, the rewards and the advantages so far) meets Â(s_t, a_t) only through s_t, since
    a_t is drawn from π(·|s_t) whatever came before. So it enters as m(s) = Σ_a π(a|s) Â(s, a):

        E[c²] + Σ w(s) π(a|s) Â(s, a)² − 2 Σ ahead(s, a) Â(s, a) + start·V̂² − 2 start_target·V̂
              + 2 (Âᵀ·later − earned + from_start·V̂)·m

    For a π-centred Â the mean m is 0 and the second line vanishes: the best Â does not depend on V̂, and that of one
    state not on that of another. Kept apart like this, a step that weighs γ^{2t} is as exact as the first.
    """

    policy: Floats  # (S, A)
    weights: Floats  # (S,): w(s) = Σ_t γ^{2t} p(s_t = s)
    ahead: Floats  # (S, A): Σ_t γ^t E[(c less the rewards before t) 1[s_t, a_t]]
    later: Floats  # (SA, S): Σ_{t<t'} γ^{t+t'} p(s_t, a_t, s_t')
    earned: Floats  # (S,): Σ_t γ^t E[(rewards before t) 1[s_t]]
    from_start: Floats  # (S, S): Σ_t γ^t p(s_t, s_0)
    start: Floats  # (S,): p(s_0)
    start_target: Floats  # (S,): E[c 1[s_0]]
    target_squared: float  # E[c²]

    def __call__(self, advantages: Floats, values: Floats) -> float:
        """Return the exact loss of two tables, π-centred or not."""
        mean = (self.policy * advantages).sum(1)
        return float(
            self.target_squared
            + self.weights @ (self.policy * advantages**2).sum(1)
            - 2 * (self.ahead * advantages).sum()
            + self.start @ values**2
            - 2 * self.start_target @ values
            + 2 * mean @ (advantages.ravel() @ self.later - self.earned + self.from_start @ values)
        )

    def __add__(self, other: "QuadraticLoss") -> "QuadraticLoss":
        moments = (f.name for f in fields(self) if f.name != "policy")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in moments})

    def best_advantages(self) -> Floats:
        """Return the π-centred Â (S, A) that minimises the loss, whatever V̂ is; 0 on pairs that the loss never sees."""
        basis = centered_basis(self.policy)
        matrix = basis.T @ (np.repeat(self.weights, self.policy.shape[1]) * self.policy.ravel() * basis.T).T
        seen = np.diag(matrix) > 0
        best = np.zeros(len(seen))
        best[seen] = np.linalg.solve(matrix[np.ix_(seen, seen)], (basis.T @ self.ahead.ravel())[seen])
        return np.asarray(basis @ best).reshape(self.policy.shape)

    def best_values(self, advantages: Floats) -> Floats:
        """Return the V̂ (S,) that minimises the loss for a fixed Â; 0 on states where no trajectory starts."""
        moment = self.start_target - (self.policy * advantages).sum(1) @ self.from_start
        best: Floats = np.divide(moment, self.start, out=np.zeros_like(moment), where=self.start > 0)
        return best


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
    require_states("target", mdp, target)
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

    It has no V̂: evaluate it with V̂ = 0.
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

    `q_ahead(t)` is E[c less the rewards before t | s_t, a_t] / γ^t: what the target still holds at step t.
    """
    states = mdp.n_states
    step = np.einsum("sa,sat->st", policy, mdp.transition)
    visited = occupancies(mdp, policy, n)
    discount = mdp.gamma ** np.arange(n)

    later = np.zeros((*policy.shape, states))
    still = np.zeros((states, states))  # Σ_{k=0}^{n-2-t} γ^k p(s_{t+1+k} | s_{t+1})
    for t in reversed(range(n - 1)):
        still = np.eye(states) + mdp.gamma * step @ still
        here = discount[t] ** 2 * visited[t][:, None] * policy
        later += here[:, :, None] * (mdp.gamma * mdp.transition @ still)

    ahead, earned, from_start = np.zeros_like(policy), np.zeros(states), np.zeros((states, states))
    before = np.zeros(states)  # E[(rewards before t) 1[s_t]]
    origin = np.diag(mdp.start)  # p(s_t, s_0)
    for t in range(n):
        here = visited[t][:, None] * policy
        ahead += discount[t] ** 2 * here * q_ahead(t)
        earned += discount[t] * before
        from_start += discount[t] * origin
        before = before @ step + np.einsum("sa,sat->t", discount[t] * here * mdp.reward, mdp.transition)
        origin = step.T @ origin
    return QuadraticLoss(
        policy=policy,
        weights=discount**2 @ visited,
        ahead=ahead,
        later=later.reshape(-1, states),
        earned=earned,
        from_start=from_start,
        start=mdp.start,
        start_target=mdp.start * (policy * q_ahead(0)).sum(1),
        target_squared=target_squared,
    )
