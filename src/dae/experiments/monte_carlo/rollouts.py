"""Thousands of rollouts as one batch: a place whose rollout has ended takes the next one at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecEnvWrapper,
    VecNormalize,
    VecTransposeImage,
    unwrap_vec_normalize,
)

from dae.agent import PPO
from dae.agent.actions import mask_reader_of, no_masks
from dae.agent.observations import assign, joined, pick
from dae.agent.policy import CriticHeadMixin, acts_in_its_own_way
from dae.envs.restoring import restorable
from dae.errors import UserError
from dae.experiments.wrappers import as_seen_by_agent, innermost
from dae.serialization import NotData

_WRAPPERS = (VecNormalize, VecTransposeImage)  # which remember nothing of the steps before


@dataclass(frozen=True)
class Plan:
    """Rollouts to play: J of them.

    The random numbers of a rollout, those of its environment and of its actions, follow from `seed` and its number
    alone, whatever else is played beside it. Rollouts with the same number have the same ones.
    """

    starts: NDArray[np.int64]  # (J,): which of the states
    actions: NDArray[np.int64]  # (J,): what is done first; then the policy acts
    numbers: NDArray[np.int64]  # (J,)
    seed: int


@dataclass(frozen=True)
class Outcomes:
    """What came of rollouts, (J,) each."""

    returns: NDArray[np.float64]  # discounted, up to the end or the horizon
    lengths: NDArray[np.int64]
    cut: NDArray[np.bool_]  # by the horizon or a time limit: what would have followed is not in the return


class Simulator:
    """An agent in environments that can be brought to any state."""

    def __init__(self, model: PPO, env: VecEnv) -> None:
        """The environments show what the agent was trained with; they are this object's to use."""
        require_enumerable(model)
        _require_restorable(env)
        self.model = model
        self.env = type(model)._wrap_env(env)
        if self.env.observation_space != model.observation_space or self.env.action_space != model.action_space:
            raise UserError(
                f"the environments show {self.env.observation_space} and take {self.env.action_space}, and the agent "
                f"knows {model.observation_space} and {model.action_space}: make them as it was trained"
            )
        normalizer = unwrap_vec_normalize(self.env)
        if normalizer is not None:
            normalizer.training = False  # the same state must look the same in all rollouts
        self._states = restorable(innermost(self.env))
        self.reset()
        self.env.step(np.zeros(self.n_slots, np.int64))  # with which some environments make attributes of their state
        self.reset()
        try:
            self.take([0])
        except NotData as error:
            raise UserError(f"the environments cannot be restored: in their state {error}") from error

    @property
    def n_slots(self) -> int:
        return self.env.num_envs

    @property
    def n_actions(self) -> int:
        assert isinstance(self.env.action_space, spaces.Discrete)
        return int(self.env.action_space.n)

    def reset(self, seed: int | None = None) -> Any:
        """Begin new episodes, with random numbers from a seed if there is one, and return what is seen."""
        if seed is not None:
            self.env.seed(seed)
        return self.env.reset()

    def take(self, slots: Sequence[int]) -> list[bytes]:
        """Return the states of some environments."""
        return self._states.take_states(slots)

    def put(self, states: Sequence[bytes], slots: Sequence[int], seeds: Sequence[int] | None = None) -> Any:
        """Bring environments to states, with random numbers of their own if there are seeds; return what is seen."""
        return as_seen_by_agent(self.env, self._states.put_states(states, slots, seeds))

    def observe(self, states: Sequence[bytes]) -> Any:
        """Return what the agent sees in states."""
        pieces = [
            self.put(piece, range(len(piece)))
            for piece in (states[i : i + self.n_slots] for i in range(0, len(states), self.n_slots))
        ]
        return joined(pieces)

    def probabilities(self, observations: Any) -> torch.Tensor:
        """Return π(·|s), (N, A)."""
        self.model.policy.set_training_mode(False)
        with torch.inference_mode():
            return self.model.policy.log_probs(obs_as_tensor(observations, self.model.device)).exp().cpu()

    def play_out(
        self,
        states: Sequence[bytes],
        plan: Plan,
        *,
        horizon: int,
        gamma: float,
        watch: Callable[[int], None] = lambda ended: None,
    ) -> Outcomes:
        """Play all rollouts to their ends, or for `horizon` steps; `watch` is told how many more have ended."""
        total, slots = len(plan.starts), self.n_slots
        outcomes = Outcomes(np.zeros(total), np.zeros(total, np.int64), np.zeros(total, bool))
        rollout = np.full(slots, -1)  # which one a place plays; -1: none
        step = np.zeros(slots, np.int64)
        uniforms = np.empty((slots, horizon), np.float32)  # which decide the actions
        discount, earned = np.ones(slots), np.zeros(slots)
        observations = self.reset()
        stream_of = _streams(plan.seed)
        waiting = 0  # the first rollout that has not begun

        def begin(free: NDArray[np.int64]) -> None:
            nonlocal waiting
            chosen = np.arange(waiting, min(waiting + len(free), total))
            waiting += len(chosen)
            places, idle = free[: len(chosen)], free[len(chosen) :]
            rollout[places], rollout[idle] = chosen, -1
            if not len(chosen):
                return
            step[places], discount[places], earned[places] = 0, 1.0, 0.0
            seeds = []
            for place, number in zip(places.tolist(), plan.numbers[chosen].tolist(), strict=True):
                stream = stream_of(number)
                seeds.append(int(stream.integers(2**63)))
                uniforms[place] = stream.random(horizon, np.float32)
            assign(observations, places, self.put([states[i] for i in plan.starts[chosen]], places.tolist(), seeds))

        begin(np.arange(slots))
        while True:
            live = np.flatnonzero(rollout >= 0)
            if not live.size:
                return outcomes
            probabilities = self.probabilities(observations if live.size == slots else pick(observations, live))
            drawn = _draw(probabilities, uniforms[live, step[live]])
            actions = np.zeros(slots, np.int64)
            actions[live] = np.where(step[live] == 0, plan.actions[rollout[live]], drawn)
            observations, rewards, dones, infos = self.env.step(actions)
            earned += discount * rewards
            discount *= gamma
            step += 1
            over = live[dones[live] | (step[live] >= horizon)]
            if over.size:
                ended = rollout[over]
                outcomes.returns[ended], outcomes.lengths[ended] = earned[over], step[over]
                outcomes.cut[ended] = [not dones[i] or infos[i].get("TimeLimit.truncated", False) for i in over]
                begin(over)
                watch(len(over))


def _streams(seed: int) -> Callable[[int], np.random.Generator]:
    """Return a function that gives the random numbers of a rollout from the first on, till it is called again.

    It brings one generator to a key; making one for each rollout would take three times as long.
    """
    bits = np.random.Philox(key=[seed, 0])
    generator, start = np.random.Generator(bits), bits.state

    def stream_of(number: int) -> np.random.Generator:
        start["state"]["key"][1] = number
        bits.state = start
        return generator

    return stream_of


def _draw(probabilities: torch.Tensor, uniforms: NDArray[np.float32]) -> NDArray[np.int64]:
    """Draw an action for each row by inverting its cumulative distribution."""
    cumulative = probabilities.cumsum(-1)
    below = cumulative[:, :-1] <= torch.from_numpy(uniforms).unsqueeze(-1) * cumulative[:, -1:]
    return np.asarray(below.sum(-1))


def require_enumerable(model: PPO) -> None:
    """Refuse an agent whose actions one cannot try all."""
    if not isinstance(model.action_space, spaces.Discrete):
        raise UserError(f"the actions are {model.action_space}: to try all of them they must be Discrete")
    if not isinstance(model.policy, CriticHeadMixin) or acts_in_its_own_way(type(model.policy)):
        raise UserError(
            f"{type(model.policy).__name__} does not say how probable actions are (it is Stable-Baselines3's own, or "
            "acts in its own way): use a policy of dae.PPO"
        )


def _require_restorable(env: VecEnv) -> None:
    """Refuse environments in which a state is more than what `take_states` keeps, or not every action is possible."""
    if mask_reader_of(env) is not no_masks:
        raise UserError("the environments mask actions, so that not all of them can be tried")
    layer = env
    while isinstance(layer, VecEnvWrapper):
        if not isinstance(layer, _WRAPPERS):
            raise UserError(
                f"the environments are in a {type(layer).__name__}, which may remember steps that a restored state "
                "does not have: leave it out"
            )
        layer = layer.venv
