"""`make_vec_env`: one door to every environment, as a Stable-Baselines3 VecEnv."""

from numbers import Integral
from typing import TYPE_CHECKING, Any

from dae.envs.family import family_of
from dae.errors import InvalidValue

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


def make_vec_env(env_id: str, n_envs: int, seed: int = 0, **options: Any) -> "VecEnv":
    """Make `n_envs` environments that step together.

    MinAtar ids run in our compiled batch, which takes `sticky_action_prob`, `difficulty_ramping`, `max_episode_steps`,
    `n_threads` and `render_mode`. Any other id is made by gymnasium, with `options` for the environment, and wrapped by
    Stable-Baselines3.
    """
    if isinstance(n_envs, bool) or not isinstance(n_envs, Integral) or n_envs < 1:
        raise InvalidValue(f"n_envs is {n_envs!r}: it must be an integer of at least 1")
    return family_of(env_id).make(env_id, int(n_envs), seed, **options)
