"""Losses by brute force: the sum over every trajectory of a finite MDP, straight from the definitions."""

from collections.abc import Callable, Iterator

import numpy as np

from dae.theory.mdp import FiniteMDP, Floats

Steps = list[tuple[int, int]]


def trajectories(mdp: FiniteMDP, policy: Floats, n: int) -> Iterator[tuple[float, Steps, int]]:
    """Yield probability, (s_0, a_0), …, (s_{n-1}, a_{n-1}) and s_n of every trajectory of n steps."""

    def extend(probability: float, steps: Steps, state: int) -> Iterator[tuple[float, Steps, int]]:
        if len(steps) == n:
            yield probability, steps, state
            return
        for action in policy[state].nonzero()[0]:
            for successor in mdp.transition[state, action].nonzero()[0]:
                chance = policy[state, action] * mdp.transition[state, action, successor]
                yield from extend(probability * chance, [*steps, (state, int(action))], int(successor))

    for state in mdp.start.nonzero()[0]:
        yield from extend(mdp.start[state], [], int(state))


class Enumeration:
    """All trajectories of n steps of a policy, and the paper's losses as sums over them."""

    def __init__(self, mdp: FiniteMDP, policy: Floats, n: int) -> None:
        self.mdp, self.n = mdp, n
        self.trajectories = list(trajectories(mdp, policy, n))

    def bootstrapped_loss(self, f: Floats, v: Floats, target: Floats) -> float:
        """Theorem 2: the whole trajectory, bootstrapped after n steps."""
        total = 0.0
        for probability, steps, last in self.trajectories:
            total += (
                probability * (self._rest(steps, 0, f) + self.mdp.gamma**self.n * target[last] - v[steps[0][0]]) ** 2
            )
        return total

    def suffix_loss(self, f: Floats, v: Floats, target: Floats) -> float:
        """The loss used in practice: every suffix of the trajectory."""
        total = 0.0
        for probability, steps, last in self.trajectories:
            for t in range(self.n):
                bootstrap = self.mdp.gamma ** (self.n - t) * target[last]
                total += probability * (self._rest(steps, t, f) + bootstrap - v[steps[t][0]]) ** 2
        return total

    def monte_carlo_loss(self, f: Floats, n: int) -> float:
        """Theorem 1: whole episodes, with the advantages of the first n steps."""
        total = 0.0
        for probability, steps, last in self.trajectories:
            assert self.mdp.absorbing[last], "some episode is not over"
            returns = self._rest(steps, 0, np.zeros_like(f))
            total += probability * (returns - sum(self.mdp.gamma**t * f[pair] for t, pair in enumerate(steps[:n]))) ** 2
        return total

    def _rest(self, steps: Steps, start: int, f: Floats) -> float:
        """Σ_{k≥start} γ^{k-start} (r_k − f_k)."""
        pairs = enumerate(steps[start:])
        return float(sum(self.mdp.gamma**k * (self.mdp.reward[pair] - f[pair]) for k, pair in pairs))


def numerical_minimiser(loss: Callable[[Floats], float], basis: Floats, shape: tuple[int, ...]) -> Floats:
    """Minimise a quadratic of f = basis·z by evaluating it: differences of a quadratic are exact derivatives."""
    size = basis.shape[1]
    if size == 0:
        return np.zeros(shape)

    def at(*indices: int) -> float:
        z = np.zeros(size)
        for index in indices:
            z[index] += 1
        return loss((basis @ z).reshape(shape))

    zero, one = at(), np.array([at(i) for i in range(size)])
    hessian = np.array([[at(i, j) - one[i] - one[j] + zero for j in range(size)] for i in range(size)])
    gradient = one - zero - hessian.diagonal() / 2
    return (basis @ np.linalg.lstsq(hessian, -gradient)[0]).reshape(shape)
