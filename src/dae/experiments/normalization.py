"""Observations and rewards scaled by running statistics: Stable-Baselines3's VecNormalize, saved as data."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from dae.envs import make_vec_env
from dae.errors import UserError, one_line
from dae.experiments.loading import NORMALIZATION
from dae.runs import RunSettings
from dae.serialization import BadData, from_bytes, to_bytes


def normalized(settings: RunSettings, env: VecEnv) -> VecEnv:
    """Wrap environments that train as the settings ask for it."""
    if not (settings.normalize_observations or settings.normalize_rewards):
        return env
    if settings.normalize_observations:
        _require_vectors(settings, env.observation_space)
    return VecNormalize(
        env,
        norm_obs=settings.normalize_observations,
        norm_reward=settings.normalize_rewards,
        gamma=settings.gamma,
    )


def make_playing_env(settings: RunSettings, n_envs: int, seed: int, statistics: bytes | None, **options: Any) -> VecEnv:
    """Make environments in which a trained agent plays: observations as it knows them, rewards as they are."""
    env = make_vec_env(settings.env, n_envs, seed, **settings.env_options | options)
    if not settings.normalize_observations:
        return env
    if statistics is None:
        raise UserError(f"{settings.env} was trained with normalised observations, whose statistics are missing")
    playing = VecNormalize(env, training=False, norm_reward=False)
    restore_statistics(playing, statistics)
    return playing


def take_statistics(env: VecEnv | None) -> bytes | None:
    """Return the statistics of environments that are normalised, as data; None if they are not."""
    normalizer = None if env is None else unwrap_vec_normalize(env)
    if normalizer is None:
        return None
    return to_bytes(
        {
            "observations": {name: _numbers(statistics) for name, statistics in _of_observations(normalizer).items()},
            "returns": _numbers(normalizer.ret_rms),
            "discounted": normalizer.returns,
        }
    )


def restore_statistics(env: VecNormalize, content: bytes) -> None:
    """Bring normalised environments to where they were; the sums of rewards only if there are as many of them."""
    try:
        stored = from_bytes(content)
        for name, statistics in _of_observations(env).items():
            _set(statistics, stored["observations"][name])
        _set(env.ret_rms, stored["returns"])
        discounted = np.asarray(stored["discounted"], np.float64)
        if discounted.shape == env.returns.shape and np.isfinite(discounted).all():
            env.returns = discounted
    except Exception as error:  # whatever it is, the file caused it
        raise BadData(
            f"{NORMALIZATION} does not hold the statistics of these environments ({type(error).__name__}: "
            f"{one_line(error)[:200]}): restore it from a backup"
        ) from error


def _require_vectors(settings: RunSettings, seen: spaces.Space[Any]) -> None:
    parts = seen.spaces.values() if isinstance(seen, spaces.Dict) else [seen]
    for part in parts:
        vector = isinstance(part, spaces.Box) and len(part.shape) < 3 and np.issubdtype(part.dtype, np.floating)
        if not vector:
            raise UserError(
                f"normalize_observations is True: {settings.env} shows {part}, but only vectors of real numbers can "
                "be normalised; images already are"
            )


def _of_observations(env: VecNormalize) -> dict[str, RunningMeanStd]:
    """Return the statistics of observations by the name of their part; a whole one has no name."""
    seen = getattr(env, "obs_rms", {})  # without it rewards alone are normalised
    return seen if isinstance(seen, dict) else {"": seen}


def _numbers(statistics: RunningMeanStd) -> list[Any]:
    return [np.asarray(statistics.mean), np.asarray(statistics.var), float(statistics.count)]


def _set(statistics: RunningMeanStd, numbers: list[Any]) -> None:
    mean, var, count = numbers
    shapes_fit = mean.shape == var.shape == np.shape(statistics.mean)
    if not (
        shapes_fit and np.isfinite(mean).all() and np.isfinite(var).all() and (var >= 0).all() and 0 < count < np.inf
    ):
        raise ValueError("means and variances of another shape, or impossible ones")
    statistics.mean, statistics.var, statistics.count = mean, var, float(count)
