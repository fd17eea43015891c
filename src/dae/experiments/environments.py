"""Environments of a command: whatever their own code raises is reported in one line."""

from typing import Any

from stable_baselines3.common.vec_env import VecEnv

from dae.envs import make_vec_env
from dae.errors import UserError, one_line


def open_env(env_id: str, n_envs: int, seed: int, **options: Any) -> VecEnv:
    """Make environments that step together."""
    try:
        return make_vec_env(env_id, n_envs, seed, **options)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{env_id} cannot be made: {type(error).__name__}: {one_line(error)}") from error
