"""Options of a command, read by tyro; a mistake in them is reported in one line."""

import contextlib
import dataclasses
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from dae.errors import UserError

Chosen = TypeVar("Chosen")


def read_options(
    what: Callable[..., Chosen], prog: str, arguments: Sequence[str], default: Any = tyro.MISSING_NONPROP
) -> Chosen:
    """Build a dataclass, or call a function, with the options on a command line."""
    mistakes = io.StringIO()
    try:
        with contextlib.redirect_stderr(mistakes):
            return tyro.cli(
                what,
                prog=prog,
                args=_with_values(what, arguments),
                default=default,
                config=(tyro.conf.FlagConversionOff,),
            )
    except SystemExit as exit:
        if not exit.code:  # help was asked for
            raise
        raise UserError(_in_one_line(mistakes.getvalue())) from exit


def option_name(field: str) -> str:
    """Return what a field is called on the command line.

    >>> option_name("batch_size")
    '--batch-size'
    """
    return f"--{field.replace('_', '-')}"


def _with_values(what: Callable[..., Any], arguments: Sequence[str]) -> list[str]:
    """Expand a switch without a value: --dry-run is --dry-run True."""
    fields = dataclasses.fields(what) if dataclasses.is_dataclass(what) else ()
    switches = {option_name(field.name) for field in fields if field.type is bool}
    words: list[str] = []
    of_switch = False
    for word in arguments:
        said = word.title()
        if of_switch and said not in ("True", "False"):
            words.append("True")
        words.append(said if of_switch and said in ("True", "False") else word)
        of_switch = word.replace("_", "-") in switches
    return [*words, "True"] if of_switch else words


def _in_one_line(box: str) -> str:
    """Return the first section of the box that tyro draws around a mistake, and what it thinks was meant."""
    ruled = [re.sub(r"[╭╮╰╯│─]", "", line).strip(" |") for line in box.splitlines()[1:]]
    lines = ["" if set(line) <= set("+- ") else line for line in ruled]
    while lines and not lines[0]:
        lines.pop(0)
    mistake = " ".join(" ".join(lines[: lines.index("")] if "" in lines else lines).split())
    meant = re.search(r"Perhaps you meant:\s+(--[\w-]+)", " ".join(lines))
    return mistake + (f"; did you mean {meant.group(1)}?" if meant else "")


# Kinds of values. ----------------------------------------------------------------------------------------------------


def parse_count(text: str) -> int:
    """Read a whole number such as 500000, 500K, 10M or 1.5e6."""
    units = {"K": 1e3, "M": 1e6, "B": 1e9}
    unit = units.get(text[-1:].upper(), 1.0)
    try:
        number = float(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"{text!r} is not a whole number, such as 12345, 500K or 10M")
    return int(number)


def format_count(number: int) -> str:
    """Write a whole number so that `parse_count` reads it: 10M, 500K, 12345."""
    for unit, size in (("M", 10**6), ("K", 10**3)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


COUNT_WORD: PrimitiveConstructorSpec[int] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="COUNT",
    instance_from_str=lambda words: parse_count(words[0]),
    is_instance=lambda value: isinstance(value, int),
    str_from_instance=lambda value: [format_count(value)],
)


def one_of(names: Iterable[str]) -> PrimitiveConstructorSpec[str]:
    """Return a word that is shown as a choice; whether it is known is checked with the other settings."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"{{{','.join(dict.fromkeys(names))}}}",
        instance_from_str=lambda words: words[0],
        is_instance=lambda value: isinstance(value, str),
        str_from_instance=lambda value: [value],
    )


def parse_keywords(words: Sequence[str]) -> str:
    """Read NAME=VALUE words, or JSON objects, and return one JSON object; a value that is not JSON is text.

    >>> parse_keywords(["slippery=false", "map=8x8", "size=3"])
    '{"map": "8x8", "size": 3, "slippery": false}'
    """
    keywords: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if is_json_object(word):
            keywords |= json.loads(word)
        elif sign and name.isidentifier():
            keywords[name] = _json_or_text(value)
        else:
            raise ValueError(f"{word!r} is not NAME=VALUE, such as is_slippery=false, nor a JSON object")
    return json.dumps(keywords, sort_keys=True)


def is_json_object(text: str) -> bool:
    """Say whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _json_or_text(value: str) -> Any:
    of_python = {"True": True, "False": False, "None": None}
    try:
        return of_python[value] if value in of_python else json.loads(value)
    except (ValueError, RecursionError):
        return value


KEYWORDS: PrimitiveConstructorSpec[str] = PrimitiveConstructorSpec(
    nargs="*",
    metavar="[NAME=VALUE ...]",
    instance_from_str=parse_keywords,
    is_instance=lambda value: isinstance(value, str),
    str_from_instance=lambda value: [value],
)
