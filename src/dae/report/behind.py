"""What is behind a cell's numbers: the command, the versions, the machines."""

import shlex
from collections import Counter
from typing import Any

from dae.report.cells import Variant
from dae.report.text import plural

_SHORT = ("advantage", "network", "preset", "frames", "actors")


def short_command(variant: Variant) -> str:
    """Return the command with the settings that one looks for first."""
    settings = variant.settings
    words = _options({name: settings[name] for name in _SHORT if name in settings})
    return _for_each_seed(variant, ["dae", "train", shlex.quote(str(settings["env"])), *words])


def full_command(variant: Variant) -> str:
    """Return the command with every setting, so that no preset of another version can change it."""
    named = {name: value for name, value in sorted(variant.settings.items()) if name not in ("env", "seed")}
    return _for_each_seed(variant, ["dae", "train", shlex.quote(str(variant.settings["env"])), *_options(named)])


def _options(settings: dict[str, Any]) -> list[str]:
    return [
        word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", shlex.quote(str(value)))
    ]


def _for_each_seed(variant: Variant, words: list[str]) -> str:
    seeds = variant.seeds
    if len(seeds) == 1:
        return " ".join([*words, "--seed", str(seeds[0])])
    contiguous = seeds == list(range(seeds[0], seeds[-1] + 1))
    which = f"$(seq {seeds[0]} {seeds[-1]})" if contiguous and len(seeds) > 4 else " ".join(map(str, seeds))
    return f"for seed in {which}; do {' '.join([*words, '--seed', '$seed'])}; done"


def made_with(variant: Variant) -> list[str]:
    """Say what the runs were made with, once for each way."""
    ways = Counter(_describe(run.made_with) for run in variant.runs)
    if len(ways) == 1:
        return list(ways)
    return [f"{plural(number, 'run')}: {way}" for way, number in sorted(ways.items())]


def _describe(made_with: dict[str, Any]) -> str:
    versions = made_with.get("versions")
    told = [f"{name} {number}" for name, number in versions.items()] if isinstance(versions, dict) else []
    told.append(f"commit {made_with.get('git_commit') or 'unknown'}")
    told += [str(made_with["machine"])] if "machine" in made_with else []
    threads = made_with.get("threads")
    return ", ".join(told + ([plural(threads, "thread")] if isinstance(threads, int) else []))


def seeds_text(variant: Variant) -> str:
    return f"{variant.size}; seeds {', '.join(map(str, variant.seeds))}"
