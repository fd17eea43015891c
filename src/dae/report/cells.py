"""Cells: the runs whose scores may be averaged, which is to say that they differ in nothing but the seed."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dae.report.paper import Score, paper_name, paper_scores
from dae.report.reading import LeftOut, Run
from dae.report.statistics import mean_and_error
from dae.report.text import METHOD_ORDER, NETWORK_ORDER, count_text, method_name, order, plural, span

# What a cell is named by, and what has no part in the result: presets are resolved into the other settings.
_NAMED = {"env", "advantage", "network"}
_WITHOUT_EFFECT = {"seed", "device", "torch_compile", "preset"}
# The paper gives each estimator its own.
OF_THE_METHOD = {"epochs", "critic_coef", "max_grad_norm", "gae_lambda"}


class Key(NamedTuple):
    """What a cell is of."""

    domain: str
    env: str
    network: str
    method: str


@dataclass(frozen=True)
class Variant:
    """Runs with the same settings, by seed."""

    runs: tuple[Run, ...]

    @property
    def settings(self) -> dict[str, Any]:
        return self.runs[0].settings

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @property
    def frames(self) -> int:
        return self.runs[0].frames

    @property
    def size(self) -> str:
        return f"{plural(len(self.runs), 'seed')} × {count_text(self.frames)} frames"


@dataclass(frozen=True)
class Cell(Variant):
    """The runs that stand for an estimator with a network on an environment, and those that do not."""

    key: Key
    others: tuple[Variant, ...]

    @property
    def name(self) -> str:
        return f"{self.key.env} · {method_name(self.key.method)} · {self.key.network}"

    def scores(self, metric: str) -> NDArray[np.float64]:
        return np.array([getattr(run, metric) for run in self.runs])

    @cached_property
    def ours(self) -> dict[str, Score]:
        return {metric: mean_and_error(self.scores(metric)) for metric in ("overall", "last")}

    def paper(self, metric: str) -> Score | None:
        """Return the paper's score, None if it has none."""
        name = paper_name(self.key.env)
        key = self.key
        return paper_scores().get((key.domain, key.network, name, metric, key.method)) if name else None


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
    "domain": lambda name: order(("minatar", "atari", "other"), name),
    "env": lambda name: (0, name),
    "network": lambda name: order(NETWORK_ORDER, name),
    "method": lambda name: order(METHOD_ORDER, name),
}


def _order(key: Key) -> list[tuple[int, str]]:
    return [_FIELD_ORDER[field](getattr(key, field)) for field in ("domain", "network", "env", "method")]


def make_cells(runs: Iterable[Run]) -> tuple[Cells, list[LeftOut]]:
    """Sort runs into cells; of two with the same settings and seed, the first by path counts.

    Where a cell has runs with different settings, those with the most seeds stand for it (then: the most frames), and
    the others are kept beside it.
    """
    variants: dict[Key, dict[str, dict[int, Run]]] = defaultdict(lambda: defaultdict(dict))
    duplicates = []
    for run in sorted(runs, key=lambda run: run.path):
        settings = {name: value for name, value in run.settings.items() if name not in _WITHOUT_EFFECT | _NAMED}
        same = variants[Key(run.domain, run.env, run.network, run.method)][json.dumps(settings, sort_keys=True)]
        if run.seed in same:
            duplicates.append(LeftOut(run.path, "duplicate", f"the same run as {same[run.seed].path}"))
        else:
            same[run.seed] = run
    return Cells(_make_cell(key, list(by_settings.values())) for key, by_settings in variants.items()), duplicates


def _make_cell(key: Key, by_seed: list[dict[int, Run]]) -> Cell:
    groups = [Variant(tuple(runs[seed] for seed in sorted(runs))) for runs in by_seed]
    chosen, *others = sorted(groups, key=lambda v: (-len(v.runs), -v.frames, v.runs[0].path))
    return Cell(chosen.runs, key, tuple(others))


def sizes(cells: Iterable[Variant]) -> str:
    """Say how many seeds and frames cells have: "2 to 3 seeds, 2M frames"."""
    counts, frames = zip(*((len(cell.runs), cell.frames) for cell in cells), strict=True)
    return f"{span(counts)} {'seed' if max(counts) == 1 else 'seeds'}, {span(frames)} frames"


def differences(here: dict[str, Any], there: dict[str, Any], *, but: Set[str] = frozenset()) -> list[str]:
    """Say in which settings two runs differ: "actors 128, not 1024"."""
    ignored = _WITHOUT_EFFECT | _NAMED | but
    return [
        f"{name} {_show(name, here)}, not {_show(name, there)}"
        for name in sorted(here.keys() | there.keys())
        if name not in ignored and here.get(name) != there.get(name)
    ]


def _show(name: str, settings: dict[str, Any]) -> str:
    if name not in settings:
        return "unset"
    value = settings[name]
    return count_text(value) if name == "frames" else f"{value}"
