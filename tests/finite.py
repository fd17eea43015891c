"""Finite MDPs as environments, and agents whose outputs there are given tables: what is measured has exact answers.

>>> mdp = dae.theory.chain(3)
>>> model = table_agent(mdp, np.full((4, 2), 0.5), values=np.arange(4.0))
>>> model.policy.predict_values(torch.eye(4)).flatten().tolist()
[0.0, 1.0, 2.0, 3.0]
>>> [index_of(state) for state in states_of(make_env(mdp, 2))]
[0, 1, 2, 3]
"""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import dae
from dae.envs.restoring import restorable
from dae.experiments.wrappers import innermost
from dae.serialization import from_bytes
from dae.theory import FiniteMDP

Floats = NDArray[np.float64]

_NEVER = -1000.0  # a logit that makes a probability exactly 0, and no NaN when it is multiplied by 0


class FiniteEnv(gym.Env[Any, int]):
    """An MDP whose state is shown as a one-hot vector; an episode ends on entering an absorbing state.

    What does not change belongs to the class, one for each MDP: the bytes of a state have what belongs to the object.
    """

    mdp: ClassVar[FiniteMDP]
    cumulative: ClassVar[Floats]  # (S, A, S)
    first: ClassVar[Floats]  # (S,)
    shown: ClassVar[NDArray[np.float32]]  # (S, S)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self._draw(self.first)
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(self.mdp.reward[self.state, action])
        self.state = self._draw(self.cumulative[self.state, action])
        return self.observe(), reward, bool(self.mdp.absorbing[self.state]), False, {}

    def observe(self) -> Any:
        return self.shown[self.state]

    def _draw(self, cumulative: Floats) -> int:
        return int(np.searchsorted(cumulative, self.np_random.random() * cumulative[-1], side="right"))


class FiniteDictEnv(FiniteEnv):
    """The same, shown as a dictionary of two parts that make up the one-hot vector."""

    def observe(self) -> dict[str, NDArray[np.float32]]:
        whole = self.shown[self.state]
        return {"first": whole[:1], "others": whole[1:]}


def make_env(mdp: FiniteMDP, n: int, *, time_limit: int | None = None, as_dict: bool = False) -> DummyVecEnv:
    """Return n environments of an MDP."""
    vector = spaces.Box(0, 1, (mdp.n_states,), np.float32)
    parts = {"first": spaces.Box(0, 1, (1,)), "others": spaces.Box(0, 1, (mdp.n_states - 1,))}
    content = {
        "mdp": mdp,
        "cumulative": mdp.transition.cumsum(-1),
        "first": mdp.start.cumsum(),
        "shown": np.eye(mdp.n_states, dtype=np.float32),
        "observation_space": spaces.Dict(parts) if as_dict else vector,
        "action_space": spaces.Discrete(mdp.n_actions),
    }
    kind = type("FiniteEnvOfMDP", (FiniteDictEnv if as_dict else FiniteEnv,), content)
    return DummyVecEnv([lambda: kind() if time_limit is None else TimeLimit(kind(), time_limit)] * n)


def table_agent(
    mdp: FiniteMDP,
    policy: Floats,
    *,
    values: Floats | None = None,
    critic: Floats | None = None,
    advantage: str = "dae",
    env: VecEnv | None = None,
    **settings: Any,
) -> dae.PPO:
    """Return an agent with the tables π (S, A), V̂ (S,) and the critic head's raw output (S, A), in single precision.

    It has `env`, or one environment of its own. A linear layer is a table of one-hot inputs, so it has no hidden ones.
    """
    env = make_env(mdp, 1) if env is None else env
    kind = "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "MlpPolicy"
    model = dae.PPO(kind, env, advantage=advantage, policy_kwargs={"net_arch": []}, device="cpu", **settings)
    with np.errstate(divide="ignore"):
        logits = np.where(policy > 0, np.log(policy), _NEVER)
    _set_table(model.policy.action_net, logits)
    _set_table(model.policy.value_net, np.zeros((mdp.n_states, 1)) if values is None else values[:, None])
    if critic is not None:
        _set_table(model.policy.critic_net, critic)
    return model


def _set_table(layer: torch.nn.Linear, table: Floats) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(table.T))
        layer.bias.zero_()


def states_of(env: VecEnv) -> list[bytes]:
    """Return the restorable states in which the environments are at state 0, 1, … of their MDP; a new episode of the
    first one is begun for it."""
    within = innermost(env)
    assert isinstance(within, DummyVecEnv)
    within.reset()
    finite, taker = within.envs[0].unwrapped, restorable(within)
    assert isinstance(finite, FiniteEnv)
    states = []
    for state in range(finite.mdp.n_states):
        finite.state = state
        within._save_obs(0, finite.observe())
        states += taker.take_states([0])
    return states


def index_of(state: bytes) -> int:
    """Return the number of the MDP's state in which an environment is."""
    return int(from_bytes(state)["environment"][-1]["state"])
