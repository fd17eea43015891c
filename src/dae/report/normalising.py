"""Scores that can be averaged over environments: 0 is where a reference begins, 1 is where it ends."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dae.paper import ABLATION, ABLATION_REFERENCE, REFERENCE
from dae.report.cells import Cell, Cells, differences
from dae.report.statistics import Estimate, interquartile_mean_interval, mean_and_error
from dae.report.text import listed, method_name, plural
from dae.runs import Axis
from dae.runs.episodes import fill
from dae.text import count_text

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """The reference's mean score in the first and in the last 1 % of its frames."""

    start: float
    end: float
    frames: int  # that its runs have

    def __call__(self, scores: Numbers) -> Numbers:
        return (scores - self.start) / (self.end - self.start)


@dataclass(frozen=True)
class Group:
    """An estimator with a network, on the environments of a domain."""

    network: str
    method: str
    environments: tuple[str, ...]
    seeds: tuple[int, ...]
    frames: int
    last: Numbers  # (seeds, environments)
    curves: Numbers  # (seeds, bins): mean over environments
    complete_from: int  # the first bin in which all runs have a score of their own
    label: str

    @property
    def size(self) -> str:
        return f"{plural(len(self.seeds), 'seed')} × {count_text(self.frames)} frames"

    @property
    def iqm(self) -> Estimate:
        return interquartile_mean_interval(self.last)


@dataclass(frozen=True)
class Normalised:
    """The groups of a domain on one scale."""

    domain: str
    reference: str
    scales: dict[str, Scale]
    groups: list[Group]
    notes: list[str]
    axis: Axis


def stacked(cell: Cell, seeds: Iterable[int] | None = None) -> Numbers:
    """Return the curves of a cell's runs, (seeds, bins)."""
    wanted = set(cell.seeds if seeds is None else seeds)
    return np.stack([run.curve for run in cell.runs if run.settings.seed in wanted])


def normalise(cells: Cells, domain: str, reference: str) -> Normalised | None:
    """Bring a domain to the scale of a reference with the baseline network; None if there are no runs of it.

    With GAE as the reference all runs are shown; on the scale of the ablation, those of the ablation, and GAE's.
    """
    inside = cells.where(domain=domain)
    references = inside.where(network="baseline", method=reference)
    if not len(references):
        return None
    if reference == ABLATION_REFERENCE:
        inside = Cells(cell for cell in inside.where(network="baseline") if cell.key.method in (*ABLATION, REFERENCE))
    scales, flat = {}, []
    for cell in references:
        curves, _ = fill(stacked(cell))
        start, end = mean_and_error(curves[:, 0]), mean_and_error(curves[:, -1])
        # A difference within the noise would be a tiny denominator that dominates all other environments.
        if end.mean - start.mean > np.nan_to_num(start.error + end.error):
            scales[cell.key.env] = Scale(start.mean, end.mean, cell.frames)
        else:
            flat.append(cell.key.env)
    name = method_name(reference)
    notes = []
    if flat:
        notes.append(
            f"Left out because {name} does not improve there by more than its standard errors: {listed(flat)}."
        )
    lacking = [env for env in inside.values("env") if env not in scales and env not in flat]
    if lacking:
        notes.append(f"Left out because {name} was not run there with the baseline network: {listed(lacking)}.")
    groups = []
    for network in inside.values("network"):
        for method in inside.where(network=network).values("method"):
            group, told = _group(inside.where(network=network, method=method), network, method, scales)
            groups += [group] if group else []
            notes += told
    sizes = {group.size for group in groups}
    if len(sizes) > 1:
        notes.append(
            "Not all have the same seeds and frames: " + "; ".join(f"{g.label}: {g.size}" for g in groups) + "."
        )
    return Normalised(domain, reference, scales, groups, notes, next(iter(references)).axis)


def _group(cells: Cells, network: str, method: str, scales: dict[str, Scale]) -> tuple[Group | None, list[str]]:
    """Put the environments of an estimator together."""
    label = f"{method_name(method)}, {network}"
    present = [cell for cell in cells if cell.key.env in scales]
    if not present:
        return None, []
    kept, notes = _with_one_budget(present, scales)
    seeds, told = _shared_seeds(kept)
    notes += told
    if seeds and len(kept) < len(scales):
        notes.append(f"stands for {len(kept)} of {len(scales)} environments: {listed(_names(kept))}")
    notes = [f"{label}: {note}." for note in notes]
    if not seeds:
        return None, notes
    filled = [fill(stacked(cell, seeds)) for cell in kept]
    own = [scales[cell.key.env] for cell in kept]
    last = [[run.last for run in cell.runs if run.settings.seed in seeds] for cell in kept]
    group = Group(
        network=network,
        method=method,
        environments=tuple(_names(kept)),
        seeds=tuple(seeds),
        frames=kept[0].frames,
        last=np.stack([scale(np.array(scores)) for scale, scores in zip(own, last, strict=True)], -1),
        curves=np.mean([scale(curves) for scale, (curves, _) in zip(own, filled, strict=True)], 0),
        complete_from=max(known_from for _, known_from in filled),
        label=label if len(kept) == len(scales) else f"{label} ({len(kept)} of {len(scales)} environments)",
    )
    return group, notes


def _with_one_budget(present: list[Cell], scales: dict[str, Scale]) -> tuple[list[Cell], list[str]]:
    """Keep the environments with the most common number of frames, and say what else differs."""
    budgets = Counter(cell.frames for cell in present)
    budget = max(budgets, key=lambda frames: (budgets[frames], frames))
    kept, notes = [cell for cell in present if cell.frames == budget], []
    for cell in present:
        env, frames = cell.key.env, scales[cell.key.env].frames
        unlike = differences(cell.settings, kept[0].settings)
        if cell.frames != budget:
            notes.append(
                f"{env} is left out: its runs have {count_text(cell.frames)} frames, others {count_text(budget)}"
            )
        elif unlike:
            notes.append(f"{env} was run with other settings than {kept[0].key.env} ({'; '.join(unlike)})")
        if cell.frames == budget != frames:
            notes.append(f"the reference has {count_text(frames)} frames on {env}, these runs {count_text(budget)}")
    return kept, notes


def _shared_seeds(cells: list[Cell]) -> tuple[list[int], list[str]]:
    """Return the seeds that were run on all environments, and name the others."""
    seeds = sorted(set.intersection(*(set(cell.seeds) for cell in cells)))
    if not seeds:
        return [], [f"left out: no seed was run on all of {listed(_names(cells))}"]
    others = sorted(set.union(*(set(cell.seeds) for cell in cells)) - set(seeds))
    if not others:
        return seeds, []
    lacking = ", ".join(map(str, others))
    return seeds, [f"{plural(len(seeds), 'seed')} on all {len(cells)} environments; left out, not on all: {lacking}"]


def _names(cells: list[Cell]) -> list[str]:
    return [cell.key.env for cell in cells]
