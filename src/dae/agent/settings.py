"""PPO's arguments: their defaults, and the checks of their values."""

import operator
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import parallel
from dae.agent.policy import acts_in_its_own_way
from dae.catalog import DAE, GAE, EstimatorInfo, default_settings
from dae.errors import InvalidValue, nearest
from dae.hyperparameters import Hyperparameters, PPOOptions, check_arguments, or_schedule
from dae.rules import POSITIVE, optional, require
from dae.text import plural

if TYPE_CHECKING:
    from dae.agent.interface import PPOInterface


def falling(start: float) -> LinearSchedule:
    """Return a schedule that falls linearly to 0 over a run."""
    return LinearSchedule(start, 0.0, 1.0)


def resolve_defaults(info: EstimatorInfo, given: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments: those given, and `dae.PPO`'s defaults for the estimator in place of `NOT_GIVEN`."""
    defaults = Hyperparameters(**default_settings(info)).arguments(falling)
    return defaults | {name: value for name, value in given.items() if value != NOT_GIVEN.get(name)}


NOT_GIVEN = {"max_grad_norm": "default"}  # where None has a meaning; for all other arguments it is None


def choose_estimator(action_space: spaces.Space[Any], policy: type[BasePolicy], clip_range_vf: Any) -> str:
    """Return the estimator of an agent whose user has not chosen one: DAE where it works, or GAE, and say why."""
    if not DAE.accepts(action_space):
        reason = f"its advantages are sums over all actions, which {type(action_space).__name__} actions do not allow"
    elif issubclass(policy, ActorCriticPolicy) and acts_in_its_own_way(policy):
        reason = f"{policy.__name__} has its own `forward` or `evaluate_actions`, which do not know DAE's critic"
    elif clip_range_vf is not None:
        reason = "clip_range_vf has no meaning where values are learned together with advantages"
    else:
        return DAE.name
    warnings.warn(f"dae.PPO uses advantage='gae' here, not DAE: {reason}", stacklevel=3)
    return GAE.name


def check_policy_and_env(policy: Any, env: Any, complete: bool, names: Iterable[str]) -> None:
    """Refuse arguments that no agent can be made with, not even one without networks."""
    if not isinstance(policy, str | type):
        raise InvalidValue(f"policy is {policy!r}: it must be a name such as 'MlpPolicy', or a class")
    if isinstance(policy, str) and policy not in names:
        hint = nearest(policy, names, f"choose one of {', '.join(names)}, or pass a class")
        raise InvalidValue(f"policy {policy!r} is not known{hint}")
    if not isinstance(env, str | gym.Env | VecEnv | None):
        raise InvalidValue(f"env is {env!r}: it must be an id such as 'CartPole-v1', an environment or a VecEnv")
    if env is None and complete:
        raise InvalidValue("env is None: an agent needs an environment to know its observation and action spaces")


def whole_seed(seed: Any) -> int | None:
    """Return a seed as Python's own integer, which its generators insist on; NumPy's are what programs often have."""
    try:
        return None if seed is None else operator.index(seed)
    except TypeError:
        raise InvalidValue(f"seed is {seed!r}: it must be an integer or None") from None


def check_observations(space: spaces.Space[Any]) -> None:
    """Refuse observations that no policy of Stable-Baselines3 can read."""
    for part in space.values() if isinstance(space, spaces.Dict) else (space,):
        if not isinstance(part, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            raise InvalidValue(
                f"observations of the kind {type(part).__name__} are not supported: it must be Box, Discrete, "
                "MultiDiscrete, MultiBinary or a Dict of these; gymnasium.wrappers.FlattenObservation may help"
            )


def check_model(model: "PPOInterface") -> None:
    """Refuse settings that cannot work, with the value, the rule and the remedy."""
    estimator, info = model.estimator, model.estimator.info
    if not issubclass(model.policy_class, ActorCriticPolicy):
        raise InvalidValue(
            f"policy {model.policy_class.__name__} is not an actor-critic policy: derive it from dae.agent.MlpPolicy, "
            "CnnPolicy or MultiInputPolicy, or from Stable-Baselines3's ActorCriticPolicy"
        )
    own_way = acts_in_its_own_way(model.policy_class)
    if estimator.head is not None and own_way:
        raise InvalidValue(
            f"policy {model.policy_class.__name__} has its own `forward` or `evaluate_actions`, which do not know the "
            f"critic that advantage={info.name!r} needs: leave them out, or use advantage='gae'"
        )
    check_observations(model.observation_space)
    if not info.accepts(model.action_space):
        raise InvalidValue(
            f"advantage={info.name!r} needs actions of the kind {' or '.join(info.action_spaces)}, not "
            f"{model.action_space}: its advantages are sums over all actions; use advantage='gae'"
        )
    if model.options.kl_coef is not None and (own_way or isinstance(model.action_space, spaces.Box)):
        what = model.policy_class.__name__ if own_way else model.action_space
        raise InvalidValue(
            f"kl_coef={model.options.kl_coef!r} needs the probabilities of all actions, which {what} does not give: "
            "leave kl_coef out to clip instead"
        )
    for name in info.ignores:
        value = getattr(model, name)
        if value != getattr(PPOOptions(), name):
            raise InvalidValue(f"{name}={value!r} has no meaning for advantage={info.name!r}; leave it out")
    in_segments = model.options.minibatches == "segments"
    if model.options.drop_last is True and not in_segments:
        raise InvalidValue("drop_last=True has no meaning without minibatches='segments'; leave it out")
    if in_segments and parallel.size() > 1:
        raise InvalidValue(
            f"minibatches='segments': {parallel.size()} processes would have different numbers of them; use 'rows'"
        )
    one_step = (model.correction, model.options.row_length) == (0, 1) and not in_segments
    if info.takes_correction and one_step and model.n_steps > 1:
        warnings.warn(
            f"row_length=1 lets {info.label} look one step ahead if correction=0: pass row_length=None for whole rows",
            stacklevel=4,  # where the user makes the agent
        )
    check_arguments(vars(model))
    require("clip_range_vf", model.clip_range_vf, optional(or_schedule(POSITIVE), "for no clipping"))
    require("target_kl", model.target_kl, optional(POSITIVE, "for no limit"))
    if model.clip_range_vf is not None and not estimator.clips_values:
        raise InvalidValue(
            f"clip_range_vf={model.clip_range_vf!r} has no meaning for advantage={info.name!r}, "
            "whose values are learned together with the advantages; leave it out"
        )
    _check_batch_size(model)


def _check_batch_size(model: "PPOInterface") -> None:
    steps = model.n_steps * model.n_envs
    rows = model.estimator.info.batching == "trajectories"
    if model.normalize_advantage and not rows and min(steps, model.batch_size) < 2:
        raise InvalidValue(
            f"a minibatch holds {min(steps, model.batch_size)} step: normalising advantages needs at least 2; "
            "raise n_steps or batch_size, or pass normalize_advantage=False"
        )
    if model.env is None:
        return
    length = min(model.options.row_length or model.n_steps, model.n_steps, model.batch_size)
    left_over = model.batch_size % length
    if rows and left_over and model.options.minibatches == "rows":
        warnings.warn(
            f"batch_size={model.batch_size} is not a multiple of rows of {plural(length, 'step')}: advantage="
            f"{model.advantage!r} trains on whole rows, so minibatches have "
            f"{plural(model.batch_size - left_over, 'step')}",
            stacklevel=5,
        )
    shuffled = not rows or (length == 1 and model.options.minibatches == "rows")
    if shuffled and steps % model.batch_size:
        warnings.warn(
            f"batch_size={model.batch_size} does not divide the {plural(steps, 'step')} of a rollout "
            f"(n_steps={model.n_steps} x {plural(model.n_envs, 'environment')}): "
            f"the last minibatch of an epoch has only {steps % model.batch_size}",
            stacklevel=5,
        )
