"""Where a cell's numbers come from: the command, the versions, the machines."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dae.report.cells import Variant
from dae.report.text import plural
from dae.runs import Provenance
from dae.runs.settings import SETTING_NAMES
from dae.terminal.options import option_name

_SHORT = ("advantage", "network", "preset", "frames", "actors")


def short_command(variant: Variant) -> str:
    """Return the command with the most important settings."""
    return _commands(variant, _SHORT)


def full_command(variant: Variant) -> str:
    """Return the command with every setting, so that no preset of another version can change it."""
    return _commands(variant, sorted(set(SETTING_NAMES) - {"env", "seed", "extended_from"}))


def _commands(variant: Variant, names: Iterable[str]) -> str:
    """Return the command with some settings; a run that was extended has one for each of its ends."""
    settings = variant.settings.to_json()
    ends = [*variant.settings.extended_from, variant.settings.frames]
    return " && ".join(
        _for_each_seed(variant, _options({name: (settings | {"frames": frames})[name] for name in names}))
        for frames in ends
    )


def _options(settings: dict[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in (option_name(name), shlex.quote(str(value)))]


def _for_each_seed(variant: Variant, options: list[str]) -> str:
    seeds = variant.seeds
    words = ["dae", "train", shlex.quote(variant.settings.env), *options]
    if len(seeds) == 1:
        return " ".join([*words, "--seed", str(seeds[0])])
    contiguous = seeds == list(range(seeds[0], seeds[-1] + 1))
    which = f"$(seq {seeds[0]} {seeds[-1]})" if contiguous and len(seeds) > 4 else " ".join(map(str, seeds))
    return f"for seed in {which}; do {' '.join([*words, '--seed', '$seed'])}; done"


def made_with(variant: Variant) -> list[str]:
    """Say what the runs were made with: versions, source and machine, one line for each combination."""
    ways = Counter(_describe(run.made_with) for run in variant.runs)
    if len(ways) == 1:
        return list(ways)
    return [f"{plural(number, 'run')}: {way}" for way, number in sorted(ways.items())]


def made_alike(variant: Variant) -> bool:
    """Say whether all runs were made by the same program."""
    ways = [dataclasses.replace(run.made_with, threads=None, machine=None, cpus=None) for run in variant.runs]
    return all(way == ways[0] for way in ways)


def _describe(made_with: Provenance) -> str:
    parts = [f"{name} {number}" for name, number in made_with.versions.items()]
    changes = " with uncommitted changes" if made_with.uncommitted_changes else ""
    parts.append(f"commit {made_with.git_commit or 'unknown'}{changes}")
    parts += [made_with.machine] if made_with.machine else []
    return ", ".join(parts + ([plural(made_with.threads, "thread")] if made_with.threads else []))


def seeds_text(variant: Variant) -> str:
    return f"{variant.size}; seeds {', '.join(map(str, variant.seeds))}"
