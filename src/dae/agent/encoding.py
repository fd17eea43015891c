"""Python values as JSON and back, for what a saved agent holds. Decoding builds values; it imports nothing by name."""

import base64
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor, NatureCNN
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.agent.policy import CnnPolicy, MlpPolicy, MultiInputPolicy

REGISTERED: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(MlpPolicy, CnnPolicy, MultiInputPolicy),
        *(FlattenExtractor, NatureCNN, CombinedExtractor, MinAtarCNN, AtariCNN, ImpalaCNN),
        *(torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop),
        *(torch.nn.Tanh, torch.nn.ReLU, torch.nn.LeakyReLU, torch.nn.ELU, torch.nn.GELU, torch.nn.SiLU),
        *(torch.nn.Sigmoid, torch.nn.Softplus, torch.nn.Mish, torch.nn.Identity),
    )
}


def register(extractor: type[BaseFeaturesExtractor]) -> type[BaseFeaturesExtractor]:
    """Let saved agents name this features extractor, so that they can be loaded without trusting the file.

    Use it as a decorator, in the program that saves and in the one that loads.
    """
    known = REGISTERED.get(extractor.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (extractor.__module__, extractor.__qualname__):
        raise ValueError(f"the name {extractor.__name__} is taken by {known.__module__}.{known.__qualname__}")
    REGISTERED[extractor.__name__] = extractor
    return extractor


class NotData(TypeError):
    """A value that cannot be written as data."""


def encode(value: Any) -> Any:
    """Return JSON for a value; dictionaries other than plain ones carry their kind as "@"."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) and key != "@" for key in value):
        return {key: encode(item) for key, item in value.items()}
    for kind, (cls, arguments, _) in _KINDS.items():
        if type(value) is cls:
            return {"@": kind, "with": [encode(argument) for argument in arguments(value)]}
    if isinstance(value, type) and REGISTERED.get(value.__name__) is value:
        return {"@": "class", "with": [value.__name__]}
    raise NotData(f"{type(value).__name__} is no data")


def decode(value: Any) -> Any:
    """Return the value that `encode` made this JSON from."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "@" not in value:
        return {key: decode(item) for key, item in value.items()}
    kind, arguments = value["@"], decode(value["with"])
    if kind == "class":
        if arguments[0] not in REGISTERED:
            raise ValueError(
                f"class {arguments[0]!r} is not registered here; decorate it with dae.agent.register before loading"
            )
        return REGISTERED[arguments[0]]
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is no kind of data that this version knows")
    return _KINDS[kind][2](*arguments)


def _array_arguments(array: Any) -> tuple[Any, ...]:
    if array.dtype.hasobject:
        raise NotData("an array of objects is no data")
    return array.dtype.str, list(array.shape), base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _array(dtype: str, shape: list[int], content: str) -> Any:
    return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape).copy()


# Each kind: its class, what it is made from, and how.
_KINDS: dict[str, tuple[type, Any, Any]] = {
    "tuple": (tuple, lambda v: v, lambda *items: items),
    "array": (np.ndarray, _array_arguments, _array),
    "box": (
        spaces.Box,
        lambda v: (v.low, v.high, v.dtype.str),
        lambda lo, hi, d: spaces.Box(lo, hi, dtype=np.dtype(d)),
    ),
    "discrete": (spaces.Discrete, lambda v: (v.n, v.start), lambda n, start: spaces.Discrete(n, start=start)),
    "multi-discrete": (spaces.MultiDiscrete, lambda v: (v.nvec,), spaces.MultiDiscrete),
    "multi-binary": (spaces.MultiBinary, lambda v: (list(v.shape),), spaces.MultiBinary),
    "dict-space": (spaces.Dict, lambda v: (dict(v.spaces),), spaces.Dict),
    "float-schedule": (FloatSchedule, lambda v: (v.value_schedule,), FloatSchedule),
    "constant-schedule": (ConstantSchedule, lambda v: (v.val,), ConstantSchedule),
    "linear-schedule": (LinearSchedule, lambda v: (v.start, v.end, v.end_fraction), LinearSchedule),
}
