"""Settings with several values each, and what a sweep over all their combinations has shown."""

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np

from dae.errors import InvalidValue
from dae.experiments.classic import Mean
from dae.experiments.sweep.planned import PlannedRun
from dae.files import write_atomically


def combinations(grid: tuple[str, ...]) -> list[dict[str, str]]:
    """Return all combinations of the values in NAME=A,B,C; without any, one that changes nothing.

    >>> combinations(("learning_rate=1e-4,3e-4", "epochs=4"))
    [{'learning_rate': '1e-4', 'epochs': '4'}, {'learning_rate': '3e-4', 'epochs': '4'}]
    """
    values: dict[str, list[str]] = {}
    for text in grid:
        name, sign, listed = text.partition("=")
        name = name.replace("-", "_")
        choices = listed.split(",")
        if not sign or not all(choices) or len(set(choices)) < len(choices) or name in values:
            raise InvalidValue(f"grid has {text!r}: it must be NAME=A,B,C with different values, each NAME once")
        values[name] = choices
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def tag_of(values: dict[str, str]) -> str:
    """Return the values as a tag of the runs that have them.

    >>> tag_of({"learning_rate": "1e-4", "epochs": "4"})
    'learning_rate=1e-4,epochs=4'
    """
    return re.sub(r"[^\w.=,+-]+", "_", ",".join(f"{name}={value}" for name, value in values.items()), flags=re.ASCII)


def summarise_grid(out: Path, runs: Iterable[PlannedRun]) -> str:
    """Write the scores of all combinations beside the runs, best ones first, and return the table."""
    cells: dict[tuple[str, str, str], list[PlannedRun]] = {}
    for run in runs:
        config = run.config
        cells.setdefault((config.env, f"{config.advantage}-{config.network}", config.tag), []).append(run)
    scored = []
    for (env, method, tag), of_cell in cells.items():
        episodes = [run.folder.read_episodes() for run in of_cell]
        last, overall = (np.array([getattr(e, name) for e in episodes]) for name in ("last", "overall"))
        scored.append((env, method, tag, Mean.of(last), Mean.of(overall), len(of_cell)))
    # Within an environment and method, the best first; a run in which no episode ended has no score, and comes last.
    scored.sort(key=lambda cell: (cell[0], cell[1], -np.nan_to_num(cell[3].value, nan=-np.inf)))
    lines = ["| environment | method | settings | Last | Overall | seeds |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {env} | {method} | {tag.replace(',', ', ')} | {last} | {overall} | {seeds} |"
        for env, method, tag, last, overall, seeds in scored
    ]
    table = "\n".join(lines)
    write_atomically(out / "grid.md", f"{table}\n".encode())
    return f"{table}\n\nmean ± standard error over seeds: {out / 'grid.md'}"
