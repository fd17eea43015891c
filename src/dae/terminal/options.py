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
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from dae.errors import UserError, nearest
from dae.terminal.help import show_help

Chosen = TypeVar("Chosen")
UNSET: Any = tyro.MISSING_NONPROP  # in place of a default: the class's own
_HELP = ("-h", "--help")


def read_options(what: type[Chosen], prog: str, arguments: Sequence[str], default: Any = UNSET) -> Chosen:
    """Build a dataclass with the options on a command line."""
    return read_or_help(what, prog, arguments, lambda words: _read(what, prog, words, default))


def read_or_help(
    what: type[Chosen], prog: str, arguments: Sequence[str], read: Callable[[list[str]], Chosen]
) -> Chosen:
    """Read options with a function. If help is asked for, show it instead, with the values that these options give."""
    words = [word for word in arguments if word not in _HELP]
    if len(words) == len(arguments):
        return read(words)
    try:
        values = read(words)
    except UserError:  # a mistake must not keep the help away
        values = UNSET
    show_help(prog, what, values, lambda: _parse(what, prog, ["--help"], values))
    raise SystemExit(0)


def option_name(field: str) -> str:
    """Return what a field is called on the command line.

    >>> option_name("batch_size")
    '--batch-size'
    """
    return f"--{field.replace('_', '-')}"


def optional_words(metavar: str) -> Any:
    """Return how help shows an option that is usually not there."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=if_given)


def if_given(default: str) -> str:
    """Say what a value is where help would say so, but nothing of one that is not there."""
    return "" if default in ("", "''", "None") else f"(default: {default})"


def _parse(what: type[Chosen], prog: str, words: list[str], default: Any) -> Chosen:
    built: Chosen = tyro.cli(
        what, prog=prog, args=words, default=default, config=(tyro.conf.FlagConversionOff,), registry=_REGISTRY
    )
    return built


def _read(what: type[Chosen], prog: str, arguments: Sequence[str], default: Any) -> Chosen:
    options = {option_name(field.name): field for field in dataclasses.fields(what)}  # type: ignore[arg-type]
    switches = {name for name, field in options.items() if field.type is bool}
    words, followers = _with_values(arguments, switches)
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if name.startswith("--") and name not in options:
            raise UserError(f"{name} is not an option of {prog}{nearest(name, options, f'see {prog} --help')}")
    mistakes = io.StringIO()
    try:
        with contextlib.redirect_stderr(mistakes):
            return _parse(what, prog, words, default)
    except SystemExit as exit:
        raise UserError(_in_one_line(mistakes.getvalue(), prog, followers)) from exit


def _with_values(arguments: Sequence[str], switches: set[str]) -> tuple[list[str], dict[str, str]]:
    """Write switches with their values: --dry-run is --dry-run yes, and --no-pictures is --pictures no.

    Also return the words that followed a switch but cannot be its value, with the switch.
    """
    words: list[str] = []
    followers: dict[str, str] = {}
    waiting = ""  # the switch that has no value yet
    for word in arguments:
        if waiting and word.lower() not in _SWITCH:
            words.append("yes")
            followers |= {} if word.startswith("-") else {word: waiting}
        name = word.replace("_", "-")
        opposite = name.replace("--no-", "--", 1)
        waiting = name if name in switches else ""
        words += [opposite, "no"] if opposite in switches - {name} else [word]
    return ([*words, "yes"] if waiting else words), followers


def _in_one_line(box: str, prog: str, followers: dict[str, str]) -> str:
    """Return what the box that tyro draws around a mistake says, in our words."""
    ruled = [re.sub(r"[╭╮╰╯│─]", "", line).strip(" |") for line in box.splitlines()[1:]]
    lines = ["" if set(line) <= set("+- ") else line for line in ruled]
    while lines and not lines[0]:
        lines.pop(0)
    mistake = " ".join(" ".join(lines[: lines.index("")] if "" in lines else lines).split())
    if found := re.fullmatch(r"invalid choice '(.*)' for argument '(.+)'\. Expected one of \((.*)\)\.?", mistake):
        word, option, choices = found[1], found[2], re.findall(r"'(.*?)'", found[3])
        return f"{option} is {word!r}: it must be one of {', '.join(choices)}{nearest(word, choices)}"
    if found := re.fullmatch(r"Missing value for argument '(.+)'\. Expected .*", mistake):
        return f"{found[1]} has no value: see {prog} --help"
    if found := re.fullmatch(r"Missing from (.+?): \S+ (.*?)\.? \(required\)", mistake):
        return f"{found[1]} needs one more word: {found[2][0].lower()}{found[2][1:]}; see {found[1]} --help"
    if found := re.fullmatch(r"Unrecognized options: (.*)", mistake):
        for word, switch in followers.items():
            return f"{switch} is {word!r}: it must be {_SWITCH_RULE}"
        return f"{found[1]!r} is more than {prog} takes: see {prog} --help"
    return mistake.removeprefix("Error parsing ")


# Kinds of values. ----------------------------------------------------------------------------------------------------


_SWITCH = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}
_SWITCH_RULE = "yes or no (or true, false, on, off, 1, 0)"


def parse_switch(text: str) -> bool:
    """Read yes or no, or one of the other words for them, in any case."""
    if text.lower() not in _SWITCH:
        raise ValueError(f"{text!r} is not {_SWITCH_RULE}")
    return _SWITCH[text.lower()]


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


def choice(names: Iterable[str]) -> str:
    """Write names as the choices of an option."""
    return f"{{{','.join(dict.fromkeys(names))}}}"


def one_of(names: Iterable[str]) -> PrimitiveConstructorSpec[str]:
    """Return a word that is shown as a choice; whether it is known is checked with the other settings."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=choice(names),
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


def _switches(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[bool] | None:
    """Return how tyro reads what is True or False."""
    if info.type is not bool:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{yes,no}",
        instance_from_str=lambda words: parse_switch(words[0]),
        is_instance=lambda value: isinstance(value, bool),
        str_from_instance=lambda value: ["yes" if value else "no"],
    )


_REGISTRY = ConstructorRegistry()
_REGISTRY.primitive_rule(_switches)
