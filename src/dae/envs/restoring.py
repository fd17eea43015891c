"""States of single environments: taken out of a batch, kept, and put back into any place of it."""

from collections.abc import Sequence
from typing import Protocol

from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs

from dae.envs.snapshots import SeparateStates
from dae.errors import UserError


class Restorable(Protocol):
    """What a VecEnv needs for Monte-Carlo rollouts: states as bytes that hold data only."""

    def take_states(self, indices: Sequence[int]) -> list[bytes]:
        """Return the exact states of some environments."""

    def put_states(
        self, states: Sequence[bytes], indices: Sequence[int], seeds: Sequence[int] | None = None
    ) -> VecEnvObs:
        """Bring environments to states, and return what they show there.

        Without `seeds` they go on as they would have. With them, each draws its random numbers from a seed of its own,
        and a time limit begins anew: it is not part of the game. (The frames of an Atari game are counted on.)
        """


def restorable(env: VecEnv) -> Restorable:
    """Return how to restore the environments of a batch one by one: its own way, or that of separate objects."""
    if hasattr(env, "take_states") and hasattr(env, "put_states"):
        return env
    if isinstance(env, DummyVecEnv):
        return SeparateStates(env)
    raise UserError(
        f"environments in a {type(env).__name__} cannot be restored one by one: it must be a DummyVecEnv, or have "
        "take_states and put_states"
    )
