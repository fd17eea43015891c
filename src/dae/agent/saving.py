"""Saving and loading agents: Stable-Baselines3's interface, but a file that holds data and cannot run code."""

import dataclasses
import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import check_for_correct_spaces, get_system_info

from dae.agent.agent_file import AgentFile, Path, is_from_sb3, write_agent
from dae.agent.estimators import ESTIMATORS, AdvantageEstimator
from dae.agent.from_sb3 import load_from_sb3
from dae.agent.networks import name_channels
from dae.errors import InvalidValue, one_line
from dae.hyperparameters import Hyperparameters, PPOOptions, SB3Settings, argument_of, check_arguments
from dae.rules import COUNT, require
from dae.serialization import decode

if TYPE_CHECKING:
    from dae.agent.policy import CriticHeadMixin

# What exists only while a program runs; a loaded agent starts without it.
_PASSING = ("ep_info_buffer", "ep_success_buffer", "_last_original_obs", "_logger")
LAST_SEEN = ("_last_obs", "_last_episode_starts")  # for `load(..., force_reset=False)`
_LARGEST_LAST = 2**24  # bytes: more than that is not worth a part of every file
_NEEDED: dict[str, Any] = {
    "advantage": str,
    "policy_class": type,
    "policy_kwargs": dict,
    "observation_space": spaces.Space,
    "action_space": spaces.Space,
}
# Every version has these; what came later is as it was before it existed.
_ALWAYS_SAVED = {
    *(argument_of(field) for field in dataclasses.fields(SB3Settings) if field.name != "anneal"),
    *("clip_range_vf", "target_kl", "use_sde", "num_timesteps"),
}
_OWN_MODULES = ("dae.", "stable_baselines3.")
_USUAL: dict[str, Any] = {"n_envs": 1, "verbose": 0, "seed": None}  # where `save(exclude=…)` has left them out
_CHECKED_BY_RULE = {argument_of(field) for field in dataclasses.fields(Hyperparameters)}

# These may be schedules.
_SCHEDULED = (
    "clip_range_vf",
    *(field.name for field in dataclasses.fields(Hyperparameters) if field.metadata["scheduled"]),
)

_OPTIONS_OF_OLD_FILES = dataclasses.asdict(PPOOptions())  # an option that is not there is as it was before it existed

Self = TypeVar("Self", bound="SafeSaving")


class WrongWeights(InvalidValue, RuntimeError):
    """Weights or an optimizer's state that do not fit; a RuntimeError too, as from Stable-Baselines3."""


class SafeSaving(BaseAlgorithm):
    """`save`, `load` and `set_parameters` on a zip of JSON and safetensors.

    Only what is not data (a schedule that is a function, a class that is not registered) is pickled, in a part of its
    own; a file with such a part is refused unless the caller passes `trust=True`.
    """

    policy: "CriticHeadMixin"
    estimator: AdvantageEstimator

    @property
    @abstractmethod
    def _network(self) -> tuple[type[Any], dict[str, Any]]:
        """The class of the network, and its arguments besides spaces and learning rate."""

    def save(self, path: Path, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None) -> None:
        """Write the agent to a zip file; an existing one is replaced only when the new one is complete."""
        left_out = {*self._excluded_save_params(), *_PASSING, *(exclude or ())} - set(include or ())
        settings = {name: value for name, value in vars(self).items() if name not in left_out}
        if _bytes(settings.get("_last_obs")) > _LARGEST_LAST:
            settings = {name: value for name, value in settings.items() if name not in LAST_SEEN}
        policy = getattr(self.policy, "_orig_mod", self.policy)  # what torch.compile has wrapped
        optimizer = self.policy.optimizer.state_dict()
        estimator = self.estimator
        pickled = write_agent(path, settings, policy.state_dict(), optimizer, estimator.options, estimator.state())
        if pickled:
            warnings.warn(
                f"the saved agent has pickled parts ({', '.join(pickled)}), so that PPO.load needs trust=True: "
                f"{_instead_of_pickling(pickled)}",
                stacklevel=2,
            )

    @classmethod
    def load(
        cls: type[Self],
        path: Path,
        env: GymEnv | None = None,
        device: torch.device | str = "auto",
        custom_objects: dict[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        trust: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Read an agent that `save` wrote, or, with `trust=True`, one of Stable-Baselines3's PPO.

        No code from the file runs, unless it has pickled parts and `trust=True` allows them. `force_reset=False` goes
        on from the last observation, in an `env` that has not been touched since.
        """
        if print_system_info:
            get_system_info()
        if trust and is_from_sb3(path):
            return load_from_sb3(cls, path, env, device, custom_objects, **kwargs)
        file = AgentFile(path)
        # As in Stable-Baselines3, custom objects only replace what the file has.
        given = {name: value for name, value in (custom_objects or {}).items() if name in file.names} | kwargs
        with file.problems_named():
            data = _USUAL | file.settings(given, trust)
            _require(data)
            estimator = _saved_estimator(data["advantage"], file)
        if "policy_kwargs" in kwargs and kwargs["policy_kwargs"] != data["policy_kwargs"]:
            raise InvalidValue(
                f"policy_kwargs differ from those saved: {kwargs['policy_kwargs']} and {data['policy_kwargs']}"
            )
        if env is not None:
            env = cls._wrap_env(env, data["verbose"])
            check_for_correct_spaces(env, data["observation_space"], data["action_space"])
            data["n_envs"] = env.num_envs
        if env is None or force_reset:
            data |= dict.fromkeys(LAST_SEEN)
        settings: dict[str, Any] = {"advantage": estimator, "device": device, "_init_setup_model": False}
        with file.problems_named():
            model = cls(data["policy_class"], env, **settings)
            if not trust:
                _require_settings(model, {name: value for name, value in data.items() if name not in given})
            vars(model).update({**_OPTIONS_OF_OLD_FILES, **data, **given})
            model.policy_kwargs = name_channels(model.policy_kwargs, file.weights)
            if not trust:
                _require_network(model, file.weights)
            model._setup_model()
            model.set_parameters(file.parameters(device), exact_match=True, device=device)
            model.estimator.load_state({name: tensor.to(model.device) for name, tensor in file.estimator_state.items()})
        if model.use_sde:
            model.policy.reset_noise()
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Load the weights and the optimizer state of a saved agent, or of a dictionary from `get_parameters`."""
        if not isinstance(load_path_or_dict, dict):
            file = AgentFile(load_path_or_dict)
            with file.problems_named():
                load_path_or_dict = file.parameters(device)
        if "policy.optimizer" in load_path_or_dict:
            fitted = _fitted(load_path_or_dict["policy.optimizer"], self.policy.optimizer)
            load_path_or_dict = load_path_or_dict | {"policy.optimizer": fitted}
        try:
            super().set_parameters(load_path_or_dict, exact_match=exact_match, device=device)
        except RuntimeError as error:  # PyTorch's, about names and shapes
            raise WrongWeights(f"the weights belong to another network: {one_line(error)}") from error


def _instead_of_pickling(names: list[str]) -> str:
    """Say how these settings could be written as data."""
    schedules = [name for name in names if name in _SCHEDULED]
    classes = [name for name in names if name in ("policy_class", "policy_kwargs")]
    others = [name for name in names if name not in (*schedules, *classes)]
    ways = [
        (schedules, f"a number or stable_baselines3.common.utils.LinearSchedule as {' and '.join(schedules)}"),
        (classes, f"dae.agent.register for the classes of {' and '.join(classes)}"),
        (others, f"save(..., exclude={others})"),
    ]
    return f"to avoid it, use {'; '.join(way for apply, way in ways if apply)}"


def _saved_estimator(name: Any, file: AgentFile) -> AdvantageEstimator:
    """Return the estimator that a file names, with its own options."""
    if name not in ESTIMATORS:
        raise InvalidValue(
            f"its estimator {name!r} is not known here; import the module that defines it, decorated with "
            "dae.agent.register_estimator, before loading"
        )
    options = decode(file.description.estimator_options)
    known = {field.name for field in dataclasses.fields(ESTIMATORS[name])}
    if not set(options) <= known:
        raise InvalidValue(f"its estimator {name!r} has no options {', '.join(sorted(set(options) - known))}")
    return ESTIMATORS[name](**options)


def _require(data: dict[str, Any]) -> None:
    """Refuse a file without the settings that every agent has, or with other values in their place."""
    for name, kind in _NEEDED.items():
        if name not in data:
            raise InvalidValue(f"its setting {name} is missing")
        if not isinstance(data[name], kind):
            raise InvalidValue(f"its setting {name} is {data[name]!r}")
    if not issubclass(data["policy_class"], ActorCriticPolicy):
        raise InvalidValue(f"its policy is {data['policy_class'].__name__}, which is not one")
    lacking = sorted(_ALWAYS_SAVED - set(data))
    if lacking:
        raise InvalidValue(f"its setting {lacking[0]} is missing: pass it, PPO.load(..., {lacking[0]}=...)")


def _require_settings(model: SafeSaving, saved: dict[str, Any]) -> None:
    """Refuse what `save` never writes, and values of other kinds than usual; attributes of the user's own may be there.

    A file must not replace methods, nor say where the program writes or what it trains in.
    """
    fresh = vars(model)
    never = {*model._excluded_save_params(), *_PASSING}
    for name, value in saved.items():
        if name in never or (name not in fresh and name not in _NEEDED and hasattr(type(model), name)):
            raise InvalidValue(f"{name!r} is not a setting of an agent")
        usual = _USUAL.get(name, fresh.get(name))
        if name in _CHECKED_BY_RULE or name in LAST_SEEN or (name in _SCHEDULED and callable(value)):
            continue
        for kind, also in ((bool, ()), (int, ()), (float, (int,)), (str, ()), (dict, ())):
            if isinstance(usual, kind) and not isinstance(value, (kind, *also)):
                raise InvalidValue(f"{name} is {value!r}: it must be of the kind of {usual!r}")
    if not isinstance(saved.get("seed"), int | None):
        raise InvalidValue(f"seed is {saved['seed']!r}: it must be a number or None")
    if "_stats_window_size" in saved:
        require("_stats_window_size", saved["_stats_window_size"], COUNT)


def _require_network(model: SafeSaving, weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse settings of another network than the one that the weights are of, before it takes memory or time."""
    check_arguments(vars(model))
    largest = max((size for tensor in weights.values() for size in tensor.shape), default=0)
    if isinstance(model.action_space, spaces.MultiBinary) and math.prod(model.action_space.shape) > largest:
        raise InvalidValue(f"its weights are not those of a policy with the actions {model.action_space}")
    kind, arguments = model._network
    layers = arguments.get("net_arch")
    stacks = layers.values() if isinstance(layers, dict) else [layers]
    if sum(len(stack) for stack in stacks if isinstance(stack, list)) > len(weights):
        raise InvalidValue(f"net_arch has more layers than the file has weights ({len(weights)})")
    chosen = arguments.get("optimizer_kwargs") or {}
    if arguments.get("optimizer_class", torch.optim.Adam) is torch.optim.Adam or "fused" in chosen:
        arguments["optimizer_kwargs"] = {**chosen, "fused": False}  # there is no fused kernel for shapes

    class Shapes(kind):  # type: ignore[misc, valid-type]
        device = torch.device("meta")  # where tensors have a shape and nothing else

    model._setup_lr_schedule()
    try:
        with Shapes.device:
            network = Shapes(model.observation_space, model.action_space, model.lr_schedule, **arguments)
    except Exception as error:  # whatever it is, the file caused it, unless a class of the user's needs real weights
        if not getattr(arguments.get("features_extractor_class"), "__module__", "dae.").startswith(_OWN_MODULES):
            return
        raise InvalidValue(f"its network cannot be built: {type(error).__name__}: {one_line(error)}") from error
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    for name in sorted({*expected, *weights}):
        here, there = expected.get(name), weights[name].shape if name in weights else None
        if here != there:
            raise InvalidValue(
                f"the weights belong to another network: {name} is {_shape(there)} in the file, and {_shape(here)} by "
                "its settings"
            )


def _shape(shape: torch.Size | None) -> str:
    return "missing" if shape is None else f"of shape {tuple(shape)}"


def _bytes(observations: Any) -> int:
    parts = observations.values() if isinstance(observations, dict) else [observations]
    return sum(getattr(part, "nbytes", 0) for part in parts)


def _fitted(state: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return an optimizer's state, checked against the live one: fused kernels do not check shapes."""
    live = optimizer.state_dict()["param_groups"]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    groups = state.get("param_groups", ())
    sizes = [len(params) if isinstance(params := group.get("params"), list) else 0 for group in groups]
    if sizes != [len(group["params"]) for group in live]:
        raise WrongWeights("the optimizer's state belongs to another network: its parameter groups differ")
    fused = any(group.get("fused") for group in optimizer.param_groups)
    for index, entries in state["state"].items():
        if index >= len(parameters):
            raise WrongWeights(f"the optimizer's state belongs to another network: it has a parameter {index}")
        parameter = parameters[index]
        for name, tensor in entries.items():
            fits = tensor.numel() == 1 if name == "step" else tensor.shape == parameter.shape
            if fused and not (fits and tensor.dtype == (torch.float32 if name == "step" else parameter.dtype)):
                raise WrongWeights(
                    f"the optimizer's state belongs to another network: {name} of parameter {index} is {tensor.dtype} "
                    f"of shape {tuple(tensor.shape)}, the parameter {parameter.dtype} of shape {tuple(parameter.shape)}"
                )
    how = ("params", "fused", "foreach", "capturable", "differentiable")
    fitted = [
        mine | {name: value for name, value in theirs.items() if name not in how}
        for mine, theirs in zip(live, groups, strict=True)
    ]
    return {"state": state["state"], "param_groups": fitted}
