"""Saving and loading agents: Stable-Baselines3's interface, but a file that holds data and cannot run code."""

import contextlib
import io
import json
import pathlib
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import cloudpickle
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import check_for_correct_spaces, get_device, get_system_info
from torch import Tensor

from dae import __version__
from dae.files import write_atomically
from dae.plain import NotData, decode, encode

FORMAT = 1
_DATA, _POLICY, _OPTIMIZER, _PICKLED = "data.json", "policy.safetensors", "optimizer.safetensors", "pickled.bin"
_LARGEST_JSON = 64 * 2**20
# What a run has at hand while it runs; a loaded agent starts without it.
_PASSING = ("ep_info_buffer", "ep_success_buffer", "_last_obs", "_last_original_obs", "_last_episode_starts", "_logger")

_MADE_WITH_THE_ENVIRONMENT = ("observation_space", "action_space", "n_envs")

Path = str | pathlib.Path | io.BufferedIOBase
Self = TypeVar("Self", bound="SafeSaving")


class SafeSaving(BaseAlgorithm):
    """`save`, `load` and `set_parameters` on a zip of JSON and safetensors.

    Only what is no data (a schedule that is a function, a class that is not registered) is pickled, in a part of its
    own; a file with such a part is refused unless the caller passes `trust=True`.
    """

    def save(self, path: Path, exclude: Iterable[str] | None = None, include: Iterable[str] | None = None) -> None:
        """Write the agent to a zip file; an existing one is replaced only when the new one is complete."""
        left_out = {*self._excluded_save_params(), *_PASSING, *(exclude or ())} - set(include or ())
        data: dict[str, Any] = {}
        pickled: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name not in left_out:
                try:
                    data[name] = encode(value)
                except NotData:
                    pickled[name] = value
        policy = getattr(self.policy, "_orig_mod", self.policy)  # what torch.compile has wrapped
        weights, aliases = _unique(policy.state_dict())
        moments, groups = _flatten(self.policy.optimizer.state_dict())
        description = {
            "format": FORMAT,
            "dae_version": __version__,
            "aliases": aliases,
            "optimizer_groups": groups,
            "pickled": sorted(pickled),
            "data": data,
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(_DATA, json.dumps(description, indent=1))
            archive.writestr(_POLICY, save_tensors(weights))
            archive.writestr(_OPTIMIZER, save_tensors(moments))
            if pickled:
                archive.writestr(_PICKLED, cloudpickle.dumps(pickled))
        _write(path, buffer.getvalue())

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
        """Read an agent that `save` wrote.

        No code of the file runs, unless it has pickled parts and `trust=True` lets them.
        """
        if print_system_info:
            get_system_info()
        given = {**(custom_objects or {}), **kwargs}
        file = _SavedAgent(path)
        with file.errors_in_one_line():
            data = file.settings(given, trust)
        if "policy_kwargs" in kwargs and kwargs["policy_kwargs"] != data["policy_kwargs"]:
            raise ValueError(
                f"policy_kwargs differ from those saved: {kwargs['policy_kwargs']} and {data['policy_kwargs']}"
            )
        if env is not None:
            env = cls._wrap_env(env, data["verbose"])
            check_for_correct_spaces(env, data["observation_space"], data["action_space"])
            data["n_envs"] = env.num_envs
        settings = {"advantage": data["advantage"], "device": device, "_init_setup_model": False}
        with file.errors_in_one_line():
            model = cls(data["policy_class"], env, **settings)
            _require_settings(vars(model), {name: value for name, value in data.items() if name not in given})
            vars(model).update(data | given)
            model._setup_model()
            model.set_parameters(file.parameters(device), exact_match=True, device=device)
        if model.use_sde:
            model.policy.reset_noise()  # type: ignore[operator]
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Take over the weights and the optimizer of a saved agent, or of a dictionary from `get_parameters`."""
        if not isinstance(load_path_or_dict, dict):
            file = _SavedAgent(load_path_or_dict)
            with file.errors_in_one_line():
                load_path_or_dict = file.parameters(device)
        if "policy.optimizer" in load_path_or_dict:
            fitted = _fitted(load_path_or_dict["policy.optimizer"], self.policy.optimizer)
            load_path_or_dict = load_path_or_dict | {"policy.optimizer": fitted}
        super().set_parameters(load_path_or_dict, exact_match=exact_match, device=device)


class _SavedAgent:
    """A file that `save` wrote, read with care."""

    def __init__(self, path: Path) -> None:
        source, self.name = (path, "the file") if isinstance(path, io.IOBase) else (_existing(path), str(path))
        self._pickled: bytes | None = None
        with self.errors_in_one_line(), zipfile.ZipFile(source) as archive:
            parts = {part.filename: part for part in archive.infolist()}
            if _DATA not in parts:
                hint = "; it looks like one of Stable-Baselines3, whose files can run code" if "data" in parts else ""
                raise ValueError(f"{self.name} is not an agent saved by dae{hint}")
            if any(part.compress_type != zipfile.ZIP_STORED for part in parts.values()):
                raise ValueError(f"{self.name} is refused: its parts are compressed, which those of dae never are")
            if parts[_DATA].file_size > _LARGEST_JSON:
                raise ValueError(f"{self.name} is refused: its description is larger than {_LARGEST_JSON} bytes")
            self._description = json.loads(archive.read(_DATA))
            if self._description["format"] > FORMAT:
                raise ValueError(
                    f"{self.name} has format {self._description['format']}, written by dae "
                    f"{self._description['dae_version']}; this version reads up to {FORMAT}: upgrade dae-rl"
                )
            self._weights = load_tensors(archive.read(_POLICY))
            self._moments = load_tensors(archive.read(_OPTIMIZER))
            if _PICKLED in parts:
                self._pickled = archive.read(_PICKLED)

    @contextlib.contextmanager
    def errors_in_one_line(self) -> Iterator[None]:
        """Tell what is wrong with the file, whatever the library that noticed makes of it."""
        try:
            yield
        except (zipfile.BadZipFile, SafetensorError, UnicodeDecodeError, json.JSONDecodeError, EOFError) as error:
            raise ValueError(f"{self.name} is damaged or no saved agent: {error}") from error
        except (LookupError, TypeError, AttributeError, RuntimeError, MemoryError, OverflowError) as error:
            what = str(error).strip().replace("\n", " ")[:200]
            raise ValueError(f"{self.name} cannot be loaded: {type(error).__name__}: {what}") from error

    def settings(self, given: dict[str, Any], trust: bool) -> dict[str, Any]:
        """Return the saved settings, with those that are given in their place."""
        data = {key: decode(value) for key, value in self._description["data"].items() if key not in given}
        needed = set(self._description["pickled"]) - set(given)
        if needed and not trust:
            raise ValueError(
                f"{self.name} has pickled parts ({', '.join(sorted(needed))}), which can run code when loaded: "
                "pass trust=True if you know where it comes from, or give these parts as custom_objects"
            )
        if needed and self._pickled is not None:
            data |= {key: value for key, value in cloudpickle.loads(self._pickled).items() if key in needed}
        return data | given

    def parameters(self, device: torch.device | str) -> dict[str, Any]:
        """Return weights and optimizer state."""
        aliases = {alias: self._weights[original] for alias, original in self._description["aliases"].items()}
        target = get_device(device)
        return {
            "policy": {key: tensor.to(target) for key, tensor in (self._weights | aliases).items()},
            "policy.optimizer": _unflatten(self._moments, self._description["optimizer_groups"]),
        }


def _require_settings(fresh: dict[str, Any], saved: dict[str, Any]) -> None:
    """Refuse attributes that an agent does not have, and numbers that are none: a file cannot replace methods."""
    for name, value in saved.items():
        if name not in fresh and name not in _MADE_WITH_THE_ENVIRONMENT:
            raise TypeError(f"{name!r} is no setting of an agent")
        if isinstance(fresh.get(name), int) and not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}")


def _fitted(state: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return an optimizer's state, checked against the live one: fused kernels believe the shapes they are told."""
    live = optimizer.state_dict()["param_groups"]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if [len(group["params"]) for group in state["param_groups"]] != [len(group["params"]) for group in live]:
        raise ValueError("the optimizer's state belongs to another network: it has other groups of parameters")
    fused = any(group.get("fused") for group in optimizer.param_groups)
    for index, entries in state["state"].items():
        parameter = parameters[index]
        for name, tensor in entries.items():
            fits = tensor.numel() == 1 if name == "step" else tensor.shape == parameter.shape
            if fused and not (fits and tensor.dtype == (torch.float32 if name == "step" else parameter.dtype)):
                raise ValueError(
                    f"the optimizer's state belongs to another network: {name} of parameter {index} is {tensor.dtype} "
                    f"of shape {tuple(tensor.shape)}, the parameter {parameter.dtype} of shape {tuple(parameter.shape)}"
                )
    how = ("params", "fused", "foreach", "capturable", "differentiable")
    groups = [
        mine | {name: value for name, value in theirs.items() if name not in how}
        for mine, theirs in zip(live, state["param_groups"], strict=True)
    ]
    return {"state": state["state"], "param_groups": groups}


def _existing(path: Any) -> pathlib.Path:
    """Find the file as Stable-Baselines3 does, with or without its suffix."""
    given = pathlib.Path(path)
    for candidate in (given, given.with_name(given.name + ".zip")):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"there is no saved agent at {path}")


def _write(path: Path, content: bytes) -> None:
    if isinstance(path, io.IOBase):
        path.write(content)
        return
    target = pathlib.Path(path)
    if not target.suffix:
        target = target.with_suffix(".zip")
    write_atomically(target, content)


def _unique(state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Keep each tensor once: a shared trunk stands in a policy's state under several names."""
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in state.items():
        original = first.setdefault(tensor.data_ptr(), name) if tensor.numel() else name
        if original != name:
            aliases[name] = original
    return {name: tensor.contiguous() for name, tensor in state.items() if name not in aliases}, aliases


def _flatten(state: dict[str, Any]) -> tuple[dict[str, Tensor], list[Any]]:
    """Write an optimizer's state as named tensors and plain groups."""
    tensors = {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            tensors[f"{index}.{key}"] = value.contiguous() if isinstance(value, Tensor) else torch.tensor(value)
    return tensors, encode(state["param_groups"])


def _unflatten(tensors: dict[str, Tensor], groups: list[Any]) -> dict[str, Any]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    return {"state": state, "param_groups": decode(groups)}
