"""`make_vec_env`: environments that step together, by id, class or function."""

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from dae.envs.family import family_of, full_id
from dae.envs.ids import import_module_of, plain_id
from dae.envs.separate import make_separate
from dae.errors import InvalidValue

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


def make_vec_env(
    env_id: "str | Callable[..., gym.Env[Any, Any]]",
    n_envs: int = 1,
    seed: int | None = 0,
    start_index: int = 0,
    monitor_dir: str | None = None,
    wrapper_class: "Callable[..., gym.Env[Any, Any]] | None" = None,
    env_kwargs: Mapping[str, Any] | None = None,
    vec_env_cls: "type[VecEnv] | None" = None,
    vec_env_kwargs: Mapping[str, Any] | None = None,
    monitor_kwargs: Mapping[str, Any] | None = None,
    wrapper_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> "VecEnv":
    """Make `n_envs` environments that step together, as a Stable-Baselines3 VecEnv.

    The arguments are those of Stable-Baselines3's `make_vec_env`; `options` are more of `env_kwargs`. An id may name
    the module that registers it ("mypackage:Maze-v0"), which is then imported.

    MinAtar ids run in our compiled batch, which takes `sticky_action_prob`, `difficulty_ramping`, `max_episode_steps`,
    `n_threads` and `render_mode`; Atari ids in emulators of ours, whose options `dae.envs.atari.options` has. With a
    wrapper, a folder for monitors or a class of vector environments, the games are separate environments, as all others
    are, and slower. The games of the paper need only their name: "Pong".
    """
    if isinstance(n_envs, bool) or not isinstance(n_envs, Integral) or n_envs < 1:
        raise InvalidValue(f"n_envs is {n_envs!r}: it must be an integer of at least 1")
    wrapping = {
        "start_index": start_index,
        "monitor_dir": monitor_dir,
        "wrapper_class": wrapper_class,
        "vec_env_cls": vec_env_cls,
        "vec_env_kwargs": vec_env_kwargs,
        "monitor_kwargs": monitor_kwargs,
        "wrapper_kwargs": wrapper_kwargs,
    }
    options = {**(env_kwargs or {}), **options}
    if not isinstance(env_id, str):
        name = getattr(env_id, "__name__", type(env_id).__name__)
        return make_separate(partial(env_id, **options), name, int(n_envs), seed, **wrapping)
    env_id = full_id(env_id)
    import_module_of(env_id)
    family, plain = family_of(env_id), plain_id(env_id)
    if any(wrapping.values()):
        return family.make_separately(env_id, int(n_envs), seed, wrapping, **options)
    return family.make(plain, int(n_envs), seed, **options)
