"""Saving and loading agents: Stable-Baselines3's interface, but a file that holds data and cannot run code."""

import io
import json
import os
import pathlib
import tempfile
import zipfile
from collections.abc import Iterable
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
from dae.agent.encoding import NotData, decode, encode

FORMAT = 1
_DATA, _POLICY, _OPTIMIZER, _PICKLED = "data.json", "policy.safetensors", "optimizer.safetensors", "pickled.bin"
_LARGEST_JSON = 64 * 2**20
# What a run has at hand while it runs; a loaded agent starts without it.
_PASSING = ("ep_info_buffer", "ep_success_buffer", "_last_obs", "_last_original_obs", "_last_episode_starts", "_logger")

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
        weights, aliases = _unique(self.policy.state_dict())
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
        data, params = _read(path, device, trust, custom_objects or {})
        if "policy_kwargs" in kwargs and kwargs["policy_kwargs"] != data["policy_kwargs"]:
            raise ValueError(
                f"policy_kwargs differ from those saved: {kwargs['policy_kwargs']} and {data['policy_kwargs']}"
            )
        if env is not None:
            env = cls._wrap_env(env, data["verbose"])
            check_for_correct_spaces(env, data["observation_space"], data["action_space"])
            data["n_envs"] = env.num_envs
        settings = {"advantage": data["advantage"], "device": device, "_init_setup_model": False}
        model = cls(data["policy_class"], env, **settings)
        vars(model).update(data)
        vars(model).update(kwargs)
        model._setup_model()
        model.set_parameters(params, exact_match=True, device=device)
        if model.use_sde:
            model.policy.reset_noise()  # type: ignore[operator]
        return model

    def set_parameters(
        self, load_path_or_dict: Any, exact_match: bool = True, device: torch.device | str = "auto"
    ) -> None:
        """Take over the weights and the optimizer of a saved agent, or of a dictionary from `get_parameters`."""
        if not isinstance(load_path_or_dict, dict):
            load_path_or_dict = _read(load_path_or_dict, device, trust=False, custom_objects=None)[1]
        super().set_parameters(load_path_or_dict, exact_match=exact_match, device=device)


def _read(
    path: Path, device: torch.device | str, trust: bool, custom_objects: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings (none where `custom_objects` is None: weights alone need no trust) and the parameters."""
    source, name = (path, "the file") if isinstance(path, io.IOBase) else (_existing(path), str(path))
    try:
        with zipfile.ZipFile(source) as archive:
            parts = set(archive.namelist())
            if _DATA not in parts:
                raise ValueError(
                    f"{name} is not an agent saved by dae"
                    + ("; it looks like one of Stable-Baselines3, whose files can run code" if "data" in parts else "")
                )
            if archive.getinfo(_DATA).file_size > _LARGEST_JSON:
                raise ValueError(f"{name} is refused: its description is larger than {_LARGEST_JSON} bytes")
            description = json.loads(archive.read(_DATA))
            if description["format"] > FORMAT:
                raise ValueError(
                    f"{name} has format {description['format']}, written by dae {description['dae_version']}; "
                    f"this version reads up to {FORMAT}: upgrade dae-rl"
                )
            weights = load_tensors(archive.read(_POLICY))
            moments = load_tensors(archive.read(_OPTIMIZER))
            pickled = archive.read(_PICKLED) if _PICKLED in parts else None
    except (zipfile.BadZipFile, SafetensorError, UnicodeDecodeError, json.JSONDecodeError, KeyError, EOFError) as error:
        raise ValueError(f"{name} is damaged or no saved agent: {error}") from error
    weights |= {alias: weights[original] for alias, original in description["aliases"].items()}
    target = get_device(device)
    params = {
        "policy": {key: tensor.to(target) for key, tensor in weights.items()},
        "policy.optimizer": _unflatten(moments, description["optimizer_groups"]),
    }
    if custom_objects is None:
        return {}, params
    data = {key: decode(value) for key, value in description["data"].items() if key not in custom_objects}
    needed = set(description["pickled"]) - set(custom_objects)
    if needed and not trust:
        raise ValueError(
            f"{name} has pickled parts ({', '.join(sorted(needed))}), which can run code when loaded: "
            "pass trust=True if you know where it comes from, or give these parts as custom_objects"
        )
    if needed and pickled is not None:
        data |= {key: value for key, value in cloudpickle.loads(pickled).items() if key in needed}
    return data | custom_objects, params


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
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        pathlib.Path(temporary).replace(target)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


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
