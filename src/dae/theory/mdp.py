"""Finite Markov decision processes and trajectories sampled from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dae.errors import InvalidValue

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A discounted MDP with S states and A actions.

    An episode ends by entering an absorbing state: one that every action leads back to, with reward 0.
    """

    transition: Floats  # (S, A, S): P(s'|s, a)
    reward: Floats  # (S, A)
    start: Floats  # (S,): p(s_0 = s)
    gamma: float

    def __post_init__(self) -> None:
        if self.reward.ndim != 2 or not np.isfinite(self.reward).all():
            raise InvalidValue(f"reward has shape {self.reward.shape}: it must be (S, A), with finite entries")
        states, actions = self.reward.shape
        if self.transition.shape != (states, actions, states):
            raise InvalidValue(
                f"transition has shape {self.transition.shape}: it must be {(states, actions, states)}, (S, A, S)"
            )
        if self.start.shape != (states,):
            raise InvalidValue(f"start has shape {self.start.shape}: it must be {(states,)}, one probability per state")
        require_distribution("transition", self.transition)
        require_distribution("start", self.start)
        if not 0 <= self.gamma <= 1:
            raise InvalidValue(f"gamma is {self.gamma}: it must be in [0, 1]")

    @property
    def n_states(self) -> int:
        return int(self.reward.shape[0])

    @property
    def n_actions(self) -> int:
        return int(self.reward.shape[1])

    @cached_property
    def absorbing(self) -> Flags:
        """Mark the states where an episode is over, (S,)."""
        stays = np.einsum("sas->sa", self.transition) == 1
        over: Flags = (stays & (self.reward == 0)).all(1)
        return over


def require_policy(mdp: FiniteMDP, policy: Floats) -> None:
    """The policy is one distribution over actions per state, (S, A)."""
    if policy.shape != mdp.reward.shape:
        raise InvalidValue(f"policy has shape {policy.shape}: it must be {mdp.reward.shape}, (S, A) of the MDP")
    require_distribution("policy", policy)


def require_states(name: str, mdp: FiniteMDP, table: Floats) -> None:
    """The table has one number per state."""
    if table.shape != (mdp.n_states,):
        raise InvalidValue(f"{name} has shape {table.shape}: it must be ({mdp.n_states},), one number per state")


def require_steps(n: int) -> None:
    """A trajectory has at least one step."""
    if n < 1:
        raise InvalidValue(f"n is {n}: it must be at least 1")


def require_distribution(name: str, probabilities: Floats) -> None:
    """Probabilities along the last axis are not negative and sum to 1."""
    if not (probabilities >= 0).all() or not np.allclose(probabilities.sum(-1), 1, rtol=0, atol=1e-9):
        raise InvalidValue(f"{name} is not a distribution: entries must be >= 0 and sum to 1 along the last axis")


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Rows of steps as an agent would record them, (B, T) each; an ended episode is followed by a new one."""

    states: Indices
    actions: Indices
    rewards: Floats
    terminated: Flags
    next_states: Indices  # the true successor, also where an episode ends


def sample(mdp: FiniteMDP, policy: Floats, *, n_rows: int, n_steps: int, rng: np.random.Generator) -> Trajectories:
    """Sample `n_rows` independent rows of `n_steps` steps; every row starts an episode."""
    require_policy(mdp, policy)
    states, actions, next_states = (np.empty((n_rows, n_steps), np.int64) for _ in range(3))
    state = _draw(np.broadcast_to(mdp.start, (n_rows, mdp.n_states)), rng)
    for t in range(n_steps):
        states[:, t] = state
        actions[:, t] = _draw(policy[state], rng)
        next_states[:, t] = state = _draw(mdp.transition[state, actions[:, t]], rng)
        over = mdp.absorbing[state]
        restart = _draw(np.broadcast_to(mdp.start, (n_rows, mdp.n_states)), rng)
        state = np.where(over, restart, state)
    return Trajectories(
        states=states,
        actions=actions,
        rewards=mdp.reward[states, actions],
        terminated=mdp.absorbing[next_states],
        next_states=next_states,
    )


def _draw(probabilities: Floats, rng: np.random.Generator) -> Indices:
    """Draw one index per row by inverting its cumulative distribution."""
    cumulative = probabilities.cumsum(-1)
    indices: Indices = (cumulative <= rng.random((len(cumulative), 1)) * cumulative[:, -1:]).sum(-1)
    return indices
