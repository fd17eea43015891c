"""Environments: `make_vec_env`, and the fast batched games behind it."""

from dae.envs.make import make_vec_env
from dae.envs.registration import register_minatar

__all__ = ["make_vec_env", "register_minatar"]
