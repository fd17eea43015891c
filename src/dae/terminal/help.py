"""What `dae COMMAND --help` shows: how to call it, what it does, examples, and the table of options that tyro draws."""

import contextlib
import dataclasses
import inspect
import io
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable
from typing import Any

import tyro

_WIDEST = 80


class _Drawn(io.StringIO):
    """Collects what tyro would write to the terminal, with its colours and frames."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def show_help(prog: str, what: type, values: Any, draw: Callable[[], object]) -> None:
    """Print the help of a command; `draw` prints tyro's, whose own beginning is left out."""
    drawn = _Drawn()
    with contextlib.redirect_stdout(drawn), contextlib.suppress(SystemExit):
        draw()
    lines = drawn.getvalue().rstrip("\n").split("\n")
    first = next(i for i, line in enumerate(lines) if "╭" in line)
    print(_usage(prog, what, values), describe(what), "\n".join(lines[first:]), sep="\n\n")


def describe(what: type) -> str:
    """Return the docstring of a class as wide as the terminal allows, and its examples line by line."""
    width = min(_WIDEST, shutil.get_terminal_size().columns)
    return "\n\n".join(
        textwrap.indent(textwrap.dedent(text), "    ")
        if text.lstrip().startswith("dae ")
        else textwrap.fill(text, width)
        for text in (inspect.getdoc(what) or "").split("\n\n")
    )


def _usage(prog: str, what: type, values: Any) -> str:
    """Return the first line; an argument without a name is there by its value, or by the name of its field."""
    words = []
    for name, field in positional_fields(what).items():
        given = getattr(values, name, field.default)
        several = " ..." if isinstance(field.default, tuple) else ""
        if given is dataclasses.MISSING:
            words.append(name.upper())
        elif given == field.default:
            words.append(f"[{name.upper()}{several}]")
        else:
            words += map(str, given if several else [given])
    return " ".join(["usage:", prog, *words, "[OPTIONS]"])


def positional_fields(what: type) -> dict[str, "dataclasses.Field[Any]"]:
    """Return the fields of a class that are arguments without a name."""
    hints = typing.get_type_hints(what, include_extras=True)
    return {
        field.name: field
        for field in dataclasses.fields(what)
        if tyro.conf.Positional in getattr(hints[field.name], "__metadata__", ())
    }
