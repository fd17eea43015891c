"""Where a cell's numbers come from: the command, the versions, the machines."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dae.report.cells import Cell
from dae.report.text import plural
from dae.runs import Provenance
from dae.runs.settings import SETTING_NAMES
from dae.terminal.options import option_name

_SHORT = ("advantage", "network", "preset", "frames", "actors")


def short_command(cell: Cell) -> str:
    """Return the command with the most important settings."""
    return _commands(cell, _SHORT)


def full_command(cell: Cell) -> str:
    """Return the command with every setting, so that no preset of another version can change it."""
    return _commands(cell, sorted(set(SETTING_NAMES) - {"env", "seed", "extended_from"}))


def _commands(cell: Cell, names: Iterable[str]) -> str:
    """Return the command with some settings; a run that was extended has one for each of its ends."""
    settings = cell.settings.to_json()
    ends = [*cell.settings.extended_from, cell.settings.frames]
    return " && ".join(
        _for_each_seed(cell, _options({name: (settings | {"frames": frames})[name] for name in names}))
        for frames in ends
    )


def _options(settings: dict[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in (option_name(name), shlex.quote(str(value)))]


def _for_each_seed(cell: Cell, options: list[str]) -> str:
    seeds = cell.seeds
    words = ["dae", "train", shlex.quote(cell.settings.env), *options]
    if len(seeds) == 1:
        return " ".join([*words, "--seed", str(seeds[0])])
    contiguous = seeds == list(range(seeds[0], seeds[-1] + 1))
    which = f"$(seq {seeds[0]} {seeds[-1]})" if contiguous and len(seeds) > 4 else " ".join(map(str, seeds))
    return f"for seed in {which}; do {' '.join([*words, '--seed', '$seed'])}; done"


def made_with(cell: Cell) -> list[str]:
    """Say what the runs were made with: versions, source and machine, one line for each combination."""
    ways = Counter(_describe(run.made_with) for run in cell.runs)
    if len(ways) == 1:
        return list(ways)
    return [f"{plural(number, 'run')}: {way}" for way, number in sorted(ways.items())]


def made_alike(cell: Cell) -> bool:
    """Say whether all runs were made by the same program."""
    ways = [dataclasses.replace(run.made_with, threads=None, machine=None, cpus=None) for run in cell.runs]
    return all(way == ways[0] for way in ways)


def _describe(made_with: Provenance) -> str:
    parts = [f"{name} {number}" for name, number in made_with.versions.items()]
    changes = " with uncommitted changes" if made_with.uncommitted_changes else ""
    parts.append(f"commit {made_with.git_commit or 'unknown'}{changes}")
    parts += [made_with.machine] if made_with.machine else []
    return ", ".join(parts + ([plural(made_with.threads, "thread")] if made_with.threads else []))


def seeds_text(cell: Cell) -> str:
    return f"{cell.size}; seeds {', '.join(map(str, cell.seeds))}"
