"""MDPs worth looking at: random ones, and those of the paper."""

from itertools import pairwise

import numpy as np

from dae.errors import InvalidValue
from dae.theory.mdp import FiniteMDP, Floats, Indices


def random_mdp(
    rng: np.random.Generator,
    *,
    n_states: int = 5,
    n_actions: int = 3,
    gamma: float = 0.9,
    branching: int = 2,
    absorbing: int = 1,
    unreachable: int = 1,
) -> FiniteMDP:
    """Draw a sparse MDP: every pair leads to at most `branching` states.

    The last `absorbing` states end an episode; nothing leads to the `unreachable` states before them.
    """
    ordinary = n_states - absorbing - unreachable
    if ordinary < 1 or min(n_actions, branching) < 1 or min(absorbing, unreachable) < 0:
        raise InvalidValue(
            f"n_states={n_states}, n_actions={n_actions}, branching={branching}, absorbing={absorbing}, "
            f"unreachable={unreachable}: at least one ordinary state, one action and one branch must remain"
        )
    entered = np.r_[0:ordinary, ordinary + unreachable : n_states]
    transition = np.zeros((n_states, n_actions, n_states))
    for state in range(n_states - absorbing):
        for action in range(n_actions):
            successors = rng.choice(entered, min(branching, len(entered)), replace=False)
            transition[state, action, successors] = _distribution(rng, len(successors))
    reward = rng.normal(size=(n_states, n_actions))
    for state in range(n_states - absorbing, n_states):
        transition[state, :, state] = 1
        reward[state] = 0
    start = np.zeros(n_states)
    first = rng.choice(ordinary, min(2, ordinary), replace=False)
    start[first] = _distribution(rng, len(first))
    return FiniteMDP(transition, reward, start, gamma)


def random_policy(rng: np.random.Generator, mdp: FiniteMDP, *, forbidden: float = 0.0) -> Floats:
    """Draw a stochastic policy (S, A) that never takes a share of about `forbidden` of the actions."""
    weights = 0.05 + rng.random(mdp.reward.shape)
    weights *= rng.random(weights.shape) >= forbidden
    weights[np.arange(mdp.n_states), rng.integers(mdp.n_actions, size=mdp.n_states)] += 0.1
    return np.asarray(weights / weights.sum(1, keepdims=True))


def _distribution(rng: np.random.Generator, size: int) -> Floats:
    weights = 0.05 + rng.random(size)
    return np.asarray(weights / weights.sum())


def chain(length: int = 128, *, gamma: float = 0.99, best: Indices | None = None) -> FiniteMDP:
    """Build the paper's first example: a walk along a chain where one action of each state earns 1 and the other 0.

    Both lead to the next state, so A(s, a) = r(s, a) − π(best|s) whatever the policy does elsewhere. `best` names the
    rewarded action of each state (default: action 0 everywhere). The state after the last ends the episode.
    """
    best = np.zeros(length, np.int64) if best is None else best
    transition = np.zeros((length + 1, 2, length + 1))
    reward = np.zeros((length + 1, 2))
    walk = np.arange(length)
    transition[walk, :, walk + 1] = 1
    transition[length, :, length] = 1
    reward[walk, best] = 1
    return FiniteMDP(transition, reward, np.eye(length + 1)[0], gamma)


def impossibility_pair(gamma: float = 1.0) -> tuple[FiniteMDP, FiniteMDP]:
    """Build two MDPs that show why advantages cannot be learned from the next step's advantages.

    From state 0, up (action 0) leads to state 1 and down to state 2, without reward; then both actions end the
    episode. In the first MDP, the paper's, this earns 1 in state 1 and 0 in state 2; in the second it earns 1 in both.
    Seen from state 0 the rewards (0) and the next advantages (0) agree, yet A(0, up) is 1 − π(up) in the first and 0 in
    the second.
    """
    transition = np.zeros((4, 2, 4))
    transition[0, 0, 1] = transition[0, 1, 2] = 1
    transition[1:, :, 3] = 1
    start = np.eye(4)[0]
    papers = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    twin = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    return FiniteMDP(transition, papers, start, gamma), FiniteMDP(transition, twin, start, gamma)


def merging_mdp(rng: np.random.Generator, k: int, *, width: int = 3, gamma: float = 0.9) -> FiniteMDP:
    """Build an MDP whose branches merge after k steps: what is done in state 0 matters for k rewards and no longer.

    From state 0 the walk passes k − 1 layers of `width` states, then enters one random MDP with the same odds whatever
    happened before.
    """
    if k < 1:
        raise InvalidValue(f"k is {k}: it must be at least 1")
    tail = random_mdp(rng, gamma=gamma)
    layered = 1 + (k - 1) * width
    n_states = layered + tail.n_states
    transition = np.zeros((n_states, tail.n_actions, n_states))
    layers = [np.arange(1)] + [1 + width * i + np.arange(width) for i in range(k - 1)]
    for here, there in pairwise(layers):
        for state in here:
            for action in range(tail.n_actions):
                transition[state, action, there] = _distribution(rng, width)
    transition[layers[-1], :, layered:] = tail.start
    transition[layered:, :, layered:] = tail.transition
    reward = np.concatenate([rng.normal(size=(layered, tail.n_actions)), tail.reward])
    return FiniteMDP(transition, reward, np.eye(n_states)[0], gamma)
