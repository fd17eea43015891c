"""Exact snapshots of gymnasium environments whose whole state is plain attributes (classic control and the like)."""

import random
import types
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs

from dae.serialization import BadData, NotData, encode, from_bytes, to_bytes

# Types of attributes that stay the same while an environment runs.
_FIXED = (gym.Space, EnvSpec, types.FunctionType, types.MethodType, type)
_NO_STATE = ("env", "render_mode")  # an environment that is drawn has the same states as one that is not
# What a Monitor keeps for its own records: the clock, and a history that would grow for ever.
_RECORDS = ("t_start", "episode_returns", "episode_lengths", "episode_times", "results_writer")


def take_snapshot(env: VecEnv, observations: VecEnvObs) -> bytes:
    """Return the state of all environments; `observations` are what they last showed."""
    if not isinstance(env, DummyVecEnv):
        raise NotData(f"the state of a {type(env).__name__} cannot be read")
    return to_bytes({"environments": [_layers(each) for each in env.envs], "observations": observations})


def restore_snapshot(env: VecEnv, snapshot: bytes) -> VecEnvObs:
    """Restore environments from a snapshot, and return the observations in it."""
    assert isinstance(env, DummyVecEnv)
    env.reset()
    # Some attributes come into being with the first step; that of an environment that can be restored fails not.
    env.step(np.array([env.action_space.sample() for _ in env.envs]))
    content = from_bytes(snapshot)
    observations: VecEnvObs = content["observations"]
    for i, (each, layers) in enumerate(zip(env.envs, content["environments"], strict=True)):
        _set_layers(each, layers)
        env._save_obs(i, _of_one(observations, i))  # what `take_states` takes next
    return observations


class SeparateStates:
    """The states of environments that are objects of their own, one by one."""

    def __init__(self, env: DummyVecEnv) -> None:
        self._env = env
        for each in env.envs:
            _ = each.unwrapped.np_random  # gymnasium makes it when it is asked for; a state must have it from the start

    def take_states(self, indices: Sequence[int]) -> list[bytes]:
        shown = self._env._obs_from_buf()
        return [
            to_bytes({"environment": _layers(self._env.envs[i]), "observation": _of_one(shown, i)}) for i in indices
        ]

    def put_states(
        self, states: Sequence[bytes], indices: Sequence[int], seeds: Sequence[int] | None = None
    ) -> VecEnvObs:
        shown = self._env._obs_from_buf()
        for k, (state, i) in enumerate(zip(states, indices, strict=True)):
            layers, observation = _read_state(state, self._env.envs[i], _of_one(shown, i))
            _set_layers(self._env.envs[i], layers)
            if seeds is not None:
                _begin_anew(self._env.envs[i], seeds[k])
            self._env._save_obs(i, observation)
        return _of_some(self._env._obs_from_buf(), indices)


def _read_state(state: bytes, env: gym.Env[Any, Any], shown: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the attributes and the observation in a state, which must be of the kind of what is shown now."""
    content = from_bytes(state)
    layers, observation = (
        (content.get("environment"), content.get("observation")) if isinstance(content, dict) else (None, None)
    )
    own = [dict] * len(_chain(env))
    if not isinstance(layers, list) or [type(layer) for layer in layers] != own or not _fits(shown, observation):
        raise BadData("it is not a state of these environments")
    return layers, observation


def _fits(shown: Any, observation: Any) -> bool:
    if isinstance(shown, dict) and isinstance(observation, dict):
        return shown.keys() == observation.keys() and all(_fits(shown[name], observation[name]) for name in shown)
    return observation is not None and _are_alike(shown, observation)


def _of_one(observations: VecEnvObs, index: int) -> Any:
    if isinstance(observations, dict):
        return {name: part[index] for name, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(part[index] for part in observations)
    return np.asarray(observations)[index]


def _of_some(observations: VecEnvObs, indices: Sequence[int]) -> VecEnvObs:
    if isinstance(observations, dict):
        return {name: part[list(indices)] for name, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(part[list(indices)] for part in observations)
    return np.asarray(observations)[list(indices)]


def _begin_anew(env: gym.Env[Any, Any], seed: int) -> None:
    """Give an environment other random numbers, and the whole of its time limit."""
    for depth, layer in enumerate(_chain(env)):
        generators = [name for name, value in sorted(vars(layer).items()) if isinstance(value, np.random.Generator)]
        for k, name in enumerate(generators):
            _set(layer, name, np.random.default_rng([seed, depth, k]))
        if isinstance(layer, TimeLimit):
            _set(layer, "_elapsed_steps", 0)


def _layers(env: gym.Env[Any, Any]) -> list[dict[str, Any]]:
    return [_attributes(layer) for layer in _chain(env)]


def _set_layers(env: gym.Env[Any, Any], layers: list[dict[str, Any]]) -> None:
    for layer, attributes in zip(_chain(env), layers, strict=True):
        own = _attributes(layer)
        for name, value in attributes.items():
            if name in _NO_STATE or (value is None and _is_canvas(getattr(layer, name, None))):
                continue
            if name not in own or not _are_alike(own[name], value):
                raise BadData(f"it would change {name} of a {type(layer).__name__}, which is not of its kind")
            _set(layer, name, value)


_NUMBER = bool | int | float | np.bool_ | np.integer | np.floating


def _are_alike(one: Any, other: Any) -> bool:
    """Say whether two values are of one kind: a file must not replace a number by something that is none.

    What an environment does not know yet, or no longer, is None; that is a number, a list or an array at other times.
    """
    if one is None or other is None:
        return isinstance(one, _NUMBER | list | tuple | np.ndarray | None) and isinstance(
            other, _NUMBER | list | tuple | np.ndarray | None
        )
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.shape, one.dtype.kind) == (other.shape, other.dtype.kind)
    if np.ndarray in (type(one), type(other)):  # some have an array after a reset, and later a tuple
        return _is_vector(one) and _is_vector(other) and len(one) == len(other)
    kinds = (_NUMBER, str, list, tuple, dict, np.random.Generator)
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in kinds)


def _is_vector(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf"
    return isinstance(value, list | tuple) and all(isinstance(number, _NUMBER) for number in value)


def _set(layer: gym.Env[Any, Any], name: str, value: Any) -> None:
    try:
        setattr(layer, name, value)
    except AttributeError as error:
        raise NotData(f"{name} of a {type(layer).__name__} cannot be set") from error


def take_generators() -> dict[str, Any]:
    """Return the states of the generators that a whole program shares."""
    return {
        "python_random": random.getstate(),
        "numpy_random": np.random.get_state(),  # noqa: NPY002 (Stable-Baselines3 draws from it)
        "torch_random": torch.get_rng_state().numpy(),
    }


def set_generators(states: dict[str, Any]) -> None:
    """Restore the generators; those of Python are not in the checkpoints of older versions."""
    if "python_random" in states:
        random.setstate(states["python_random"])
    np.random.set_state(states["numpy_random"])  # noqa: NPY002
    torch.set_rng_state(torch.from_numpy(states["torch_random"]))


def play_on_alike(first: VecEnv, second: VecEnv) -> bool:
    """Test it: after a snapshot of the first is restored into the second, both must continue identically.

    Some environments draw from a generator only when they are reset, so both are reset on the way.
    """
    first.action_space.seed(0)
    actions = [np.array([first.action_space.sample()]) for _ in range(120)]
    before, after = actions[:20], [*actions[20:60], None, *actions[60:90], None, *actions[90:]]
    generators = take_generators()
    try:
        first.reset()
        observations = _play(first, before)[-1][0]
        snapshot, drawn = take_snapshot(first, observations), take_generators()
        expected = _play(first, after)
        _play(second, [None, *before[:7], None, None])  # another past: nothing of it may show
        shown = restore_snapshot(second, snapshot)
        set_generators(drawn)
        steps = zip(expected, _play(second, after), strict=True)
        return _equal(observations, shown) and all(
            _equal(a, b) for one, two in steps for a, b in zip(one, two, strict=True)
        )
    except (NotData, BadData, _EnvironmentFailed):
        return False
    finally:
        set_generators(generators)
        first.close()
        second.close()


class _EnvironmentFailed(Exception):
    """What an environment raises here it will raise in training, where it is reported."""


def _play(env: VecEnv, actions: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return observations, rewards and ends of all steps; where the action is None, what a reset shows."""
    try:
        return [(env.reset(),) if action is None else env.step(action)[:3] for action in actions]
    except (Exception, SystemExit) as error:  # an environment may end the program
        raise _EnvironmentFailed from error


def _chain(env: gym.Env[Any, Any]) -> list[gym.Env[Any, Any]]:
    """Return an environment's wrappers, from the outside in, and the environment itself."""
    layers = [env]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    return [layer for layer in layers if getattr(type(layer), "has_state", True)]


def _attributes(layer: gym.Env[Any, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in vars(layer).items():
        own = name in _NO_STATE or (isinstance(layer, Monitor) and name in _RECORDS)
        if not own and not isinstance(value, _FIXED) and not _is_canvas(value):
            encode(value)  # raises where the value is not data
            kept[name] = value
    return kept


def _is_canvas(value: Any) -> bool:
    """Say whether a value is what an environment draws with; it has none as long as it is not drawn."""
    return type(value).__module__.partition(".")[0] == "pygame"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(np.array_equal(a[key], b[key]) for key in a)
    return np.array_equal(a, b)
