"""Python values as JSON and back. Decoding builds values of the kinds known here; it imports nothing by name."""

import base64
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from gymnasium import spaces

from dae.errors import InvalidValue, one_line

T = TypeVar("T")


class NotData(TypeError):
    """A value that cannot be written as data."""


class BadData(InvalidValue):
    """JSON that `encode` cannot have written."""


class Kind(NamedTuple):
    """How values of one class are taken apart and put together again."""

    cls: type
    arguments: Callable[[Any], Any]
    build: Callable[..., Any]


def encode(value: Any) -> Any:
    """Return JSON for a value; what is not plain JSON carries its kind as "@"."""
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"@": "float", "with": [str(value)]}  # JSON has no infinity
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) and key != "@" for key in value):
        return {key: encode(item) for key, item in value.items()}
    for name, kind in KINDS.items():
        if type(value) is kind.cls or (kind.cls is type and isinstance(value, type)):
            return {"@": name, "with": [encode(argument) for argument in kind.arguments(value)]}
    raise NotData(f"a {type(value).__name__} is not data")


def decode(value: Any) -> Any:
    """Return the value that `encode` made this JSON from."""
    try:
        return _decode(value)
    except RecursionError:
        raise BadData("it is nested too deeply") from None


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "@" not in value:
        return {key: _decode(item) for key, item in value.items()}
    name, arguments = value["@"], _decode(value.get("with"))
    if not isinstance(name, str) or name not in KINDS or not isinstance(arguments, list):
        raise BadData(f"{name!r} is not a kind of data that this version knows")
    try:
        return KINDS[name].build(*arguments)
    except Exception as error:  # whatever it is, the file caused it
        raise BadData(f"its {name} cannot be built: {one_line(error)}") from error


def to_bytes(value: Any) -> bytes:
    """Return a value as JSON text."""
    return json.dumps(encode(value)).encode()


def from_bytes(content: bytes) -> Any:
    """Return the value that `to_bytes` wrote."""
    return decode(parse_json(content, Any))


def parse_json(content: bytes, kind: type[T]) -> T:
    """Return the value of a JSON text, as values of a type; what is no such text is `BadData`, however it is wrong."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadData(one_line(error)) from error
    except RecursionError:
        raise BadData("it is nested too deeply") from None


def _array_arguments(array: Any) -> tuple[Any, ...]:
    if array.dtype.hasobject:
        raise NotData("an array of objects is not data")
    return array.dtype.str, list(array.shape), base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _array(dtype: str, shape: list[int], content: str) -> Any:
    return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape).copy()


_BIT_GENERATORS = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}


def _generator(state: dict[str, Any]) -> np.random.Generator:
    bits = _BIT_GENERATORS[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)


# Other packages add kinds of their own.
KINDS: dict[str, Kind] = {
    "float": Kind(float, lambda v: (str(v),), float),  # infinities and NaN; see `encode`
    "tuple": Kind(tuple, lambda v: v, lambda *items: items),
    "dict": Kind(dict, lambda v: [list(item) for item in v.items()], lambda *items: dict(items)),
    "array": Kind(np.ndarray, _array_arguments, _array),
    "generator": Kind(np.random.Generator, lambda v: (v.bit_generator.state,), _generator),
    "box": Kind(
        spaces.Box, lambda v: (v.low, v.high, v.dtype.str), lambda lo, hi, d: spaces.Box(lo, hi, dtype=np.dtype(d))
    ),
    "discrete": Kind(
        spaces.Discrete,
        lambda v: (v.n, v.start, v.dtype.str),
        lambda n, start, d: spaces.Discrete(n, start=start, dtype=np.dtype(d).type),
    ),
    "multi-discrete": Kind(
        spaces.MultiDiscrete,
        lambda v: (v.nvec, v.start, v.dtype.str),
        lambda nvec, start, d: spaces.MultiDiscrete(nvec, start=start, dtype=np.dtype(d).type),
    ),
    # With one dimension its size is a number, which Stable-Baselines3 asks for.
    "multi-binary": Kind(
        spaces.MultiBinary,
        lambda v: (list(v.shape),),
        lambda shape: spaces.MultiBinary(shape if len(shape) > 1 else shape[0]),
    ),
    # As pairs: a Dict made from a dictionary would sort its keys.
    "dict-space": Kind(
        spaces.Dict,
        lambda v: ([list(item) for item in v.spaces.items()],),
        lambda pairs: spaces.Dict([tuple(pair) for pair in pairs]),
    ),
}
