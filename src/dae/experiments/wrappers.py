"""What lies between an agent and its environments: observations that are normalised, or images turned around.

Snapshots hold what the environments themselves show.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, VecTransposeImage


def innermost(env: VecEnv) -> VecEnv:
    """Return the environments themselves."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env


def as_shown_within(env: VecEnv, observations: Any) -> Any:
    """Return what the environments themselves showed when the agent saw these observations."""
    if isinstance(env, VecNormalize):
        return as_shown_within(env.venv, env.get_original_obs())
    if isinstance(env, VecTransposeImage) and not env.skip:
        observations = _each_image(env, observations, lambda image: np.moveaxis(image, 1, -1))
    return as_shown_within(env.venv, observations) if isinstance(env, VecEnvWrapper) else observations


def as_seen_by_agent(env: VecEnv, observations: Any) -> Any:
    """Return what the agent sees of observations that the environments themselves show."""
    if not isinstance(env, VecEnvWrapper):
        return observations
    observations = as_seen_by_agent(env.venv, observations)
    if isinstance(env, VecNormalize):
        env.old_obs = observations
        return env.normalize_obs(observations)
    if isinstance(env, VecTransposeImage) and not env.skip:
        return _each_image(env, observations, lambda image: np.moveaxis(image, -1, 1))
    return observations


def _each_image(env: VecTransposeImage, observations: Any, turn: Any) -> Any:
    if not isinstance(observations, dict):
        return _turned(observations, turn)
    return {name: _turned(part, turn) if name in env.image_space_keys else part for name, part in observations.items()}


def _turned(image: NDArray[Any], turn: Any) -> NDArray[Any]:
    return np.ascontiguousarray(turn(image))
