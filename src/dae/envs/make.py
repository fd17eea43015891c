"""`make_vec_env`: one door to every environment, as a Stable-Baselines3 VecEnv."""

import difflib
import inspect
from numbers import Integral
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from dae.envs.registration import MINATAR_IDS

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


def make_vec_env(env_id: str, n_envs: int, seed: int = 0, **options: Any) -> "VecEnv":
    """Make `n_envs` environments that step together.

    MinAtar ids run in our compiled batch, which takes `sticky_action_prob`, `difficulty_ramping`, `max_episode_steps`,
    `n_threads` and `render_mode`. Any other id is made by gymnasium, with `options` for the environment, and wrapped by
    Stable-Baselines3.
    """
    if isinstance(n_envs, bool) or not isinstance(n_envs, Integral) or n_envs < 1:
        raise ValueError(f"n_envs is {n_envs!r}: it must be an integer of at least 1")
    n_envs = int(n_envs)
    if env_id in MINATAR_IDS:
        return _make_minatar(env_id, n_envs, seed, options)
    require_known(env_id)
    from stable_baselines3.common.env_util import make_vec_env as make_with_sb3

    # A function, because for an id Stable-Baselines3 would ask for pictures that no one wants.
    return make_with_sb3(lambda: gym.make(env_id, **options), n_envs, seed=seed)


def _make_minatar(env_id: str, n_envs: int, seed: int, options: dict[str, Any]) -> "VecEnv":
    from dae.envs.minatar import MinAtarBatch
    from dae.envs.sb3 import BatchVecEnv

    render_mode = options.pop("render_mode", None)
    settings = MINATAR_IDS[env_id]
    known = set(inspect.signature(MinAtarBatch).parameters) - {"n_envs", "seed"} - set(settings)
    for name in options:
        if name not in known:
            raise ValueError(
                f"{name} is no option of {env_id}; choose from {', '.join(sorted(known | {'render_mode'}))}"
            )
    return BatchVecEnv(MinAtarBatch(n_envs=n_envs, seed=seed, **settings, **options), render_mode=render_mode)


def require_known(env_id: str) -> None:
    """Refuse an id that gymnasium does not know, with those that are spelled most like it."""
    try:
        gym.spec(env_id)
    except gym.error.Error as error:
        if env_id in gym.registry:
            raise
        near = difflib.get_close_matches(env_id, gym.registry, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "gymnasium.pprint_registry() lists those installed"
        raise ValueError(f"environment {env_id!r} is not known; {hint}") from error
