"""Atari as Stable-Baselines3 makes it, one environment after the other: what our games are compared with."""

from functools import partial
from typing import Any

import ale_py
import gymnasium as gym
import numpy as np
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecFrameStack, VecTransposeImage
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from dae.envs.atari.game import spoken
from dae.envs.atari.options import AtariOptions
from dae.envs.atari.vec_env import AtariVecEnv
from dae.envs.separate import make_separate
from dae.errors import InvalidValue

_OF_THE_WRAPPER = {
    "noop_max": "noop_max",
    "terminal_on_life_loss": "terminal_on_life_loss",
    "clip_reward": "clip_reward",
    "sticky_action_prob": "action_repeat_probability",
}


def make_separate_games(env_id: str, options: AtariOptions, n_envs: int, seed: int | None, **wrapping: Any) -> VecEnv:
    """Make games as `make_atari_env` does, or in another wrapper than `AtariWrapper`, which then sees every frame."""
    if wrapping.get("wrapper_class") is None:
        wrapping["wrapper_class"] = AtariWrapper
        own = {of_wrapper: getattr(options, name) for name, of_wrapper in _OF_THE_WRAPPER.items()}
        wrapping["wrapper_kwargs"] = own | dict(wrapping.get("wrapper_kwargs") or {})
    else:
        for name in _OF_THE_WRAPPER:
            if getattr(options, name) != getattr(AtariOptions, name):
                raise InvalidValue(
                    f"{name} is {getattr(options, name)!r}: with a wrapper_class of yours it has no effect"
                )
    return make_separate(partial(_make_emulator, env_id, options), env_id, n_envs, seed, **wrapping)


def make_reference(env_id: str, options: AtariOptions, n_envs: int, seed: int | None) -> VecEnv:
    """Make games as `make_atari_env` does, with stacked frames, the channels first."""
    games = make_separate_games(env_id, options, n_envs, seed)
    return _Told(VecTransposeImage(VecFrameStack(games, AtariVecEnv.n_stack)))


def _make_emulator(env_id: str, options: AtariOptions) -> gym.Env[Any, Any]:
    gym.register_envs(ale_py)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner
    return gym.make(
        env_id,
        frameskip=1,
        repeat_action_probability=0.0,  # `AtariWrapper` has it
        max_num_frames_per_episode=options.max_episode_frames,
        full_action_space=options.full_action_space,
        render_mode=options.render_mode,
    )


class _Told(VecEnvWrapper):
    """Games of which the family hears what it hears of ours.

    Lengths of episodes are in steps of the agent; the Monitor is within `AtariWrapper`, and counts frames.
    """

    last_screen = None  # it is gone when an episode has ended

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self._steps = np.zeros(self.num_envs, int)

    @property
    def action_names(self) -> list[str]:
        return [spoken(name) for name in self.venv.env_method("get_action_meanings", indices=0)[0]]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        if attr_name in ("action_names", "last_screen"):
            return [getattr(self, attr_name) for _ in self._get_indices(indices)]
        return super().get_attr(attr_name, indices)

    def reset(self) -> VecEnvObs:
        self._steps[:] = 0
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        self._steps += 1
        for i, info in enumerate(infos):
            if "episode" in info:
                info["episode"] = info["episode"] | {"l": int(self._steps[i])}
                self._steps[i] = 0
        return observations, rewards, dones, infos
