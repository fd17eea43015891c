"""Cells: the runs whose scores may be averaged, because they differ only in the seed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dae.catalog import describe, rank_of
from dae.envs import families
from dae.paper import Score
from dae.report.reading import LeftOut, Result
from dae.report.statistics import mean_and_error
from dae.report.text import order, plural, span
from dae.runs import Axis, RunSettings
from dae.runs.settings import SETTING_NAMES, WITHOUT_EFFECT
from dae.text import count_text

# Settings that name a cell, and settings that do not affect the result.
_NOT_COMPARED = WITHOUT_EFFECT | {"env", "advantage", "network"}


class Key(NamedTuple):
    """What a cell is of."""

    domain: str  # the environments' family
    env: str
    network: str
    method: str


@dataclass(frozen=True)
class Cell:
    """Runs of an estimator with a network on an environment that have the same settings, by seed."""

    key: Key
    runs: tuple[Result, ...]
    others: tuple["Cell", ...] = ()  # the same with other settings, beside the one that stands for all

    @property
    def settings(self) -> RunSettings:
        return self.runs[0].settings

    @property
    def seeds(self) -> list[int]:
        return [run.settings.seed for run in self.runs]

    @property
    def frames(self) -> int:
        return self.settings.frames

    @property
    def axis(self) -> Axis:
        return self.runs[0].axis

    @property
    def size(self) -> str:
        return f"{plural(len(self.runs), 'seed')} × {count_text(self.frames)} frames"

    @property
    def name(self) -> str:
        return f"{self.key.env} · {describe(self.key.method).label} · {self.key.network}"

    def scores(self, metric: str) -> NDArray[np.float64]:
        return np.array([getattr(run, metric) for run in self.runs])

    @cached_property
    def ours(self) -> dict[str, Score]:
        return {metric: mean_and_error(self.scores(metric)) for metric in ("overall", "last")}


class Cells:
    """All cells of a report, in the order in which they are shown."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = {cell.key: cell for cell in sorted(cells, key=lambda cell: _order(cell.key))}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def where(self, **fields: str) -> "Cells":
        """Return the cells whose keys have these fields."""
        return Cells(c for c in self._cells.values() if all(getattr(c.key, k) == v for k, v in fields.items()))

    def get(self, domain: str, env: str, network: str, method: str) -> Cell | None:
        return self._cells.get(Key(domain, env, network, method))

    def values(self, field: str) -> list[str]:
        """Return the different values of a field, in order."""
        return list(dict.fromkeys(sorted((getattr(key, field) for key in self._cells), key=_FIELD_ORDER[field])))


_FIELD_ORDER: dict[str, Callable[[str], tuple[int, str]]] = {
    "domain": lambda name: order([family.name for family in families()], name),
    "env": lambda name: (0, name),
    "network": lambda name: order([network for family in families() for network in family.network_names], name),
    "method": rank_of,
}


def _order(key: Key) -> list[tuple[int, str]]:
    return [_FIELD_ORDER[field](getattr(key, field)) for field in ("domain", "network", "env", "method")]


def make_cells(runs: Iterable[Result]) -> tuple[Cells, list[LeftOut]]:
    """Sort runs into cells; of two with the same settings and seed, the first by path counts.

    Where a cell has runs with different settings, those with the most seeds stand for it (then: the most frames), and
    the others are kept beside it.
    """
    variants: dict[Key, dict[tuple[Any, ...], dict[int, Result]]] = defaultdict(lambda: defaultdict(dict))
    duplicates = []
    for run in sorted(runs, key=lambda run: run.path):
        own = run.settings
        key = Key(own.family.name, own.env, own.network, own.advantage)
        same = variants[key][tuple(_compared(own).values())]
        if own.seed in same:
            duplicates.append(LeftOut(run.path, "duplicate", f"the same run as {same[own.seed].path}"))
        else:
            same[own.seed] = run
    return Cells(_make_cell(key, list(by_settings.values())) for key, by_settings in variants.items()), duplicates


def _make_cell(key: Key, by_seed: list[dict[int, Result]]) -> Cell:
    groups = [Cell(key, tuple(runs[seed] for seed in sorted(runs))) for runs in by_seed]
    chosen, *others = sorted(groups, key=lambda cell: (-len(cell.runs), -cell.frames, cell.runs[0].path))
    return replace(chosen, others=tuple(others))


def sizes(cells: Iterable[Cell]) -> str:
    """Say how many seeds and frames cells have: "2 to 3 seeds, 2M frames"."""
    counts, frames = zip(*((len(cell.runs), cell.frames) for cell in cells), strict=True)
    return f"{span(counts)} {'seed' if max(counts) == 1 else 'seeds'}, {span(frames)} frames"


def summary_of(cells: "Cells") -> str:
    """Say what numbers of cells are: "mean ± standard error over 2 to 3 seeds, 2M frames"."""
    if all(len(cell.runs) == 1 for cell in cells):
        return f"1 seed: no standard error; {span(cell.frames for cell in cells)} frames"
    return f"mean ± standard error over {sizes(cells)}"


def differences(here: RunSettings, there: RunSettings, *, but: Set[str] = frozenset()) -> list[str]:
    """Say in which settings two runs differ: "actors 128, not 1024"."""
    ours, theirs = _compared(here), _compared(there)
    return [
        f"{name} {show_setting(name, ours[name])}, not {show_setting(name, theirs[name])}"
        for name in unlike([here, there])
        if name not in but
    ]


def unlike(settings: Sequence[RunSettings]) -> list[str]:
    """Return the names of the settings in which runs differ."""
    first, *others = map(_compared, settings)
    return sorted(name for name, value in first.items() if any(other[name] != value for other in others))


def _compared(settings: RunSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in SETTING_NAMES if name not in _NOT_COMPARED}


def show_setting(name: str, value: Any) -> str:
    return count_text(value) if name == "frames" else f"{value}"
