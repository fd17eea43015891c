"""PPO's arguments: what they are when they are not given, and which cannot work."""

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from gymnasium import spaces
from stable_baselines3.common.utils import LinearSchedule

from dae.agent.estimators import ESTIMATORS
from dae.agent.policy import CriticHeadMixin

if TYPE_CHECKING:
    from dae.agent.ppo import PPO

STABLE_BASELINES: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_steps": 2048,
    "batch_size": 64,
    "n_epochs": 10,
    "clip_range": 0.2,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}

# Learning rate and clip range fall linearly to 0 over the run; gradients are not clipped.
PAPER: dict[str, Any] = {
    "learning_rate": LinearSchedule(2.5e-4, 0.0, 1.0),
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 6,
    "clip_range": LinearSchedule(0.1, 0.0, 1.0),
    "ent_coef": 0.01,
    "vf_coef": 1.5,
    "max_grad_norm": None,
}


def resolve_defaults(advantage: str, **given: Any) -> dict[str, Any]:
    """Fill in what was not given: None, but for `max_grad_norm`, where None means "no clipping"."""
    defaults = STABLE_BASELINES if advantage == "gae" else PAPER
    not_given = {"max_grad_norm": "default"}
    return {name: defaults[name] if value == not_given.get(name) else value for name, value in given.items()}


def check_arguments(policy: Any, env: Any, advantage: Any, complete: bool) -> None:
    """Refuse what not even an agent without networks can be made of."""
    if not isinstance(advantage, str) or advantage not in ESTIMATORS:
        raise ValueError(f"advantage={advantage!r} is not known; choose one of {', '.join(ESTIMATORS)}")
    if not isinstance(policy, str | type):
        raise ValueError(f"policy is {policy!r}: it must be a name such as 'MlpPolicy', or a class")
    if env is None and complete:
        raise ValueError("env is None: an agent needs an environment to know what it sees and does")


def check_settings(model: "PPO") -> None:
    """Refuse settings that cannot work, with the value, the rule and the remedy."""
    estimator = ESTIMATORS[model.advantage]
    if not issubclass(model.policy_class, CriticHeadMixin):
        raise ValueError(
            f"policy {model.policy_class.__name__} has no place for the estimator's outputs: "
            "derive it from dae.agent.MlpPolicy, CnnPolicy or MultiInputPolicy"
        )
    if not isinstance(model.action_space, spaces.Discrete):
        if estimator.head is not None:
            raise ValueError(
                f"advantage={model.advantage!r} needs a discrete action space, not {model.action_space}: "
                "its advantages are centred by a sum over all actions; use advantage='gae'"
            )
        if model.kl_coef is not None:
            raise ValueError(
                f"kl_coef={model.kl_coef!r} needs a discrete action space, not {model.action_space}: "
                "the divergence is a sum over all actions; leave kl_coef out to clip instead"
            )
    _check_numbers(model)
    if model.clip_range_vf is not None and not estimator.clips_values:
        raise ValueError(
            f"clip_range_vf={model.clip_range_vf!r} has no meaning for advantage={model.advantage!r}, "
            "whose values are learned together with the advantages; leave it out"
        )
    _check_batch_size(model)


def _check_numbers(model: "PPO") -> None:
    def require(name: str, holds: Callable[[Any], bool], rule: str) -> None:
        value = getattr(model, name)
        if not holds(value):
            raise ValueError(f"{name} is {value!r}: it must be {rule}")

    def number(x: Any) -> bool:
        return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)

    for name in ("n_steps", "batch_size", "n_epochs"):
        require(name, lambda n: number(n) and isinstance(n, Integral) and int(n) >= 1, "an integer of at least 1")
    for name in ("gamma", "gae_lambda"):
        require(name, lambda x: number(x) and 0 <= x <= 1, "in [0, 1]")
    require("learning_rate", lambda x: callable(x) or (number(x) and x >= 0), "a number of at least 0 or a schedule")
    require("clip_range", lambda x: callable(x) or (number(x) and x > 0), "a positive number or a schedule")
    require(
        "clip_range_vf", lambda x: x is None or callable(x) or (number(x) and x > 0), "None, positive or a schedule"
    )
    for name in ("ent_coef", "vf_coef"):
        require(name, lambda x: number(x) and x >= 0, "a number of at least 0")
    require("max_grad_norm", lambda x: x is None or (number(x) and x > 0), "positive, or None for no clipping")
    require("kl_coef", lambda x: x is None or (number(x) and x >= 0), "at least 0, or None to clip instead")
    require("target_kl", lambda x: x is None or (number(x) and x > 0), "positive, or None for no limit")
    for name in ("normalize_advantage", "bootstrap_truncations", "torch_compile"):
        require(name, lambda x: isinstance(x, bool), "True or False")


def _check_batch_size(model: "PPO") -> None:
    frames = model.n_steps * model.n_envs
    rows = ESTIMATORS[model.advantage].batching == "trajectories"
    if model.normalize_advantage and not rows and min(frames, model.batch_size) < 2:
        raise ValueError(
            f"a minibatch holds {min(frames, model.batch_size)} frame: normalising advantages needs at least 2; "
            "raise n_steps or batch_size, or pass normalize_advantage=False"
        )
    if model.env is None:
        return
    if rows and model.batch_size > model.n_steps and model.batch_size % model.n_steps:
        whole = model.batch_size // model.n_steps * model.n_steps
        warnings.warn(
            f"batch_size={model.batch_size} is no multiple of n_steps={model.n_steps}: advantage={model.advantage!r} "
            f"trains on whole rows, so that minibatches have {whole} frames",
            stacklevel=2,
        )
    if not rows and frames % model.batch_size:
        warnings.warn(
            f"batch_size={model.batch_size} does not divide the {frames} frames of a rollout "
            f"(n_steps={model.n_steps} x {model.n_envs} environments): "
            f"the last minibatch of an epoch has {frames % model.batch_size}",
            stacklevel=2,
        )
