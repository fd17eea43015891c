"""A saved agent as a file: a zip of JSON and safetensors, written atomically and validated on reading."""

import contextlib
import errno
import io
import json
import pathlib
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle
import msgspec
import torch
from safetensors.torch import load as load_tensors, save as save_tensors
from stable_baselines3.common.utils import get_device
from torch import Tensor

from dae import __version__
from dae.agent.finite import NotFiniteError, not_finite
from dae.errors import InvalidValue, one_line
from dae.files import write_atomically
from dae.serialization import BadData, NotData, decode, encode, parse_json

FORMAT = 1
_DATA, _POLICY, _OPTIMIZER, _PICKLED = "data.json", "policy.safetensors", "optimizer.safetensors", "pickled.bin"
_ESTIMATOR = "estimator.safetensors"
_SB3_DATA = "data"
_LARGEST_JSON = 64 * 2**20
_LARGEST_PART = 2**33

Path = str | pathlib.Path | io.BufferedIOBase


class _Header(msgspec.Struct):
    """The fields that every version of the format has."""

    format: int
    dae_version: str = "unknown"


class Description(_Header, kw_only=True):
    """The JSON part of a file."""

    aliases: dict[str, str]  # tensors that the file stores under another name
    optimizer_groups: list[dict[str, Any]]
    pickled: list[str]  # settings that cannot be written as data
    data: dict[str, Any]  # all other settings
    estimator_options: dict[str, Any] = {}


def write_agent(
    path: Path,
    settings: Mapping[str, Any],
    policy: Mapping[str, Tensor],
    optimizer: Mapping[str, Any],
    estimator_options: Mapping[str, Any],
    estimator_state: Mapping[str, Tensor],
) -> list[str]:
    """Write an agent and return which settings are pickled; an existing file is replaced when the new one is whole."""
    data: dict[str, Any] = {}
    pickled: dict[str, Any] = {}
    for name, value in settings.items():
        try:
            data[name] = encode(value)
        except NotData:
            pickled[name] = value
    weights, aliases = _unique(policy)
    moments, groups = _flatten(optimizer)
    broken = not_finite(weights | moments | dict(estimator_state))
    if broken is not None:
        raise NotFiniteError(f"the agent is not saved: its {broken} has NaN or infinity in it")
    description = {
        "format": FORMAT,
        "dae_version": __version__,
        "aliases": aliases,
        "optimizer_groups": groups,
        "pickled": sorted(pickled),
        "data": data,
    }
    if estimator_options:
        description["estimator_options"] = encode(dict(estimator_options))
    text = json.dumps(description, indent=1, allow_nan=False)
    if len(text) > _LARGEST_JSON:
        largest = max(data, key=lambda name: len(json.dumps(data[name])))
        raise InvalidValue(
            f"the agent is too large to be saved: its attribute {largest!r} takes most of {len(text)} bytes, more than "
            f"{_LARGEST_JSON}; leave it out with exclude=[{largest!r}]"
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(_DATA, text)
        archive.writestr(_POLICY, save_tensors(weights))
        archive.writestr(_OPTIMIZER, save_tensors(moments))
        if estimator_state:
            archive.writestr(_ESTIMATOR, save_tensors({k: v.contiguous() for k, v in estimator_state.items()}))
        if pickled:
            archive.writestr(_PICKLED, cloudpickle.dumps(pickled))
    _write(path, buffer.getvalue())
    return sorted(pickled)


def is_from_sb3(path: Path) -> bool:
    """Say whether a file looks like one that Stable-Baselines3 saved."""
    source = path if isinstance(path, io.IOBase) else _existing(path)
    if not zipfile.is_zipfile(source):
        return False
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
    return _SB3_DATA in names and _DATA not in names


class AgentFile:
    """A file that `write_agent` wrote."""

    def __init__(self, path: Path) -> None:
        source, self.name = (path, "the file") if isinstance(path, io.IOBase) else (_existing(path), str(path))
        with self._damage_in_one_line(), zipfile.ZipFile(source) as archive:
            parts = {part.filename: part for part in archive.infolist()}
            if _DATA not in parts:
                hint = (
                    "; it looks like a Stable-Baselines3 file, which can run code when loaded: if you trust its "
                    "source, PPO.load(..., trust=True) carries its weights over"
                )
                raise InvalidValue(f"{self.name} is not an agent saved by dae{hint if _SB3_DATA in parts else ''}")
            if any(part.compress_type != zipfile.ZIP_STORED for part in parts.values()):
                raise InvalidValue(f"{self.name} is refused: its parts are compressed, but dae never compresses them")
            for name, part in parts.items():
                largest = _LARGEST_JSON if name == _DATA else _LARGEST_PART
                if part.file_size > largest:
                    raise InvalidValue(f"{self.name} is refused: its {name} is larger than {largest:,} bytes")
            lacking = [name for name in (_POLICY, _OPTIMIZER) if name not in parts]
            if lacking:
                raise InvalidValue(f"{self.name} is damaged: it has no {lacking[0]}")
            header = parse_json(archive.read(_DATA), _Header)
            if header.format > FORMAT:
                raise InvalidValue(
                    f"{self.name} has format {header.format}, written by dae {header.dae_version}; this version reads "
                    f"up to {FORMAT}: upgrade dae-rl"
                )
            self.description = parse_json(archive.read(_DATA), Description)
            self._weights = load_tensors(archive.read(_POLICY))
            self._moments = load_tensors(archive.read(_OPTIMIZER))
            self.estimator_state = load_tensors(archive.read(_ESTIMATOR)) if _ESTIMATOR in parts else {}
            self._pickled = archive.read(_PICKLED) if _PICKLED in parts else None
        broken = not_finite(self._weights | self._moments | self.estimator_state)
        if broken is not None:
            raise InvalidValue(f"{self.name} is refused: its {broken} has NaN or infinity in it")

    @contextlib.contextmanager
    def _damage_in_one_line(self) -> Iterator[None]:
        """Report what is wrong with the file, whichever library noticed it."""
        try:
            yield
        except (InvalidValue, OSError) as error:
            if isinstance(error, BadData) or (isinstance(error, OSError) and error.errno == errno.EINVAL):
                raise self._damaged(error) from error
            raise
        except Exception as error:  # each library has its own, and more for files that someone has crafted
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InvalidValue:
        return InvalidValue(f"{self.name} is damaged or not a saved agent: {one_line(error)[:200]}")

    @contextlib.contextmanager
    def problems_named(self) -> Iterator[None]:
        """Name the file in errors about its settings and weights."""
        try:
            yield
        except InvalidValue as error:
            raise InvalidValue(f"{self.name} cannot be loaded: {one_line(error)[:300]}") from error

    @property
    def names(self) -> set[str]:
        """The names of all settings, those of pickled parts too."""
        return {*self.description.data, *self.description.pickled}

    def settings(self, given: Mapping[str, Any], trust: bool) -> dict[str, Any]:
        """Return the saved settings; those in `given` replace them."""
        data = {key: decode(value) for key, value in self.description.data.items() if key not in given}
        needed = set(self.description.pickled) - set(given)
        if needed and not trust:
            raise InvalidValue(
                f"it has pickled parts ({', '.join(sorted(needed))}), which can run code when loaded: "
                "pass trust=True if you trust its source, or pass these parts as custom_objects"
            )
        if needed and self._pickled is not None:
            data |= {key: value for key, value in cloudpickle.loads(self._pickled).items() if key in needed}
        return {**data, **given}

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights of the policy, under all their names."""
        lacking = sorted(set(self.description.aliases.values()) - set(self._weights))
        if lacking:
            raise InvalidValue(f"the weights {lacking[0]} are missing")
        return self._weights | {alias: self._weights[name] for alias, name in self.description.aliases.items()}

    def parameters(self, device: torch.device | str) -> dict[str, Any]:
        """Return weights and optimizer state."""
        target = get_device(device)
        return {
            "policy": {name: tensor.to(target) for name, tensor in self.weights.items()},
            "policy.optimizer": _unflatten(self._moments, self.description.optimizer_groups),
        }


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


def _unique(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Keep each tensor once: a shared trunk appears in a policy's state under several names."""
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in state.items():
        original = first.setdefault(tensor.data_ptr(), name) if tensor.numel() else name
        if original != name:
            aliases[name] = original
    return {name: tensor.contiguous() for name, tensor in state.items() if name not in aliases}, aliases


def _flatten(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[Any]]:
    """Write an optimizer's state as named tensors and plain groups."""
    tensors = {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            tensors[f"{index}.{key}"] = value.contiguous() if isinstance(value, Tensor) else torch.tensor(value)
    return tensors, encode(state["param_groups"])


def _unflatten(tensors: dict[str, Tensor], groups: list[Any]) -> dict[str, Any]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition(".")
        if not index.isdecimal() or not key:
            raise InvalidValue(f"{name!r} is not a part of an optimizer's state")
        state.setdefault(int(index), {})[key] = tensor
    return {"state": state, "param_groups": decode(groups)}
