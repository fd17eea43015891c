"""Environments that are objects of their own, which Stable-Baselines3 steps one by one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dae.errors import UserError, one_line

if TYPE_CHECKING:
    import gymnasium as gym
    from stable_baselines3.common.vec_env import VecEnv


def make_separate(
    create: "Callable[[], gym.Env[Any, Any]]", name: str, n_envs: int, seed: int | None, **wrapping: Any
) -> "VecEnv":
    """Make environments by calling `create`; `wrapping` are arguments of Stable-Baselines3's `make_vec_env`."""
    from stable_baselines3.common.env_util import make_vec_env

    try:
        # A function, because with an id Stable-Baselines3 would turn on rendering, which is not needed here.
        return make_vec_env(create, n_envs, seed=seed, **wrapping)
    except (Exception, SystemExit) as error:  # the environment's own: a package is missing, an option is unknown, …
        raise UserError(f"{name} cannot be made: {type(error).__name__}: {one_line(error)}") from error
