"""Options of a command, read by tyro; a mistake in them is told in one line."""

import contextlib
import dataclasses
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tyro

from dae.runs.problem import RunProblem

Chosen = TypeVar("Chosen")


def read_options(
    what: Callable[..., Chosen], prog: str, arguments: Sequence[str], default: Any = tyro.MISSING_NONPROP
) -> Chosen:
    """Build a dataclass, or call a function, with the options on a command line."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
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
        raise RunProblem(_in_one_line(told.getvalue())) from exit


def _with_values(what: Callable[..., Any], arguments: Sequence[str]) -> list[str]:
    """Write out what a switch alone says: --dry-run is --dry-run True."""
    fields = dataclasses.fields(what) if dataclasses.is_dataclass(what) else ()
    switches = {f"--{field.name.replace('_', '-')}" for field in fields if field.type is bool}
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
