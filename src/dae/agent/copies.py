"""Environments that use one array for all their observations, made safe."""

import copy
from typing import Any

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper


class CopiedObservations(gym.Wrapper[Any, Any, Any, Any]):
    """Hands out copies: otherwise the first observation of an episode would overwrite the last of the one before.

    It is invisible: attributes are those of the environment within.
    """

    has_state = False  # snapshots leave it out

    def reset(self, **options: Any) -> Any:
        """Pass on just what is given: an environment may take less than gymnasium allows."""
        observation, info = self.env.reset(**options)
        return copy.deepcopy(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(action)
        return copy.deepcopy(observation), *rest

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # it is being copied or unpickled, and has nothing within yet
            raise AttributeError(name)
        return getattr(self.env, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "env" or name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self.env, name, value)


def copy_observations(env: VecEnv) -> None:
    """Let environments that are stepped one after the other hand out copies of their observations."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    if not isinstance(env, DummyVecEnv):
        return
    for i, each in enumerate(env.envs):
        if isinstance(each, Monitor):  # which users look for in its place
            each.env = _copied(each.env)
        else:
            env.envs[i] = _copied(each)


def _copied(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    return env if isinstance(env, CopiedObservations) else CopiedObservations(env)
