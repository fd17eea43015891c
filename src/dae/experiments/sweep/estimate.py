"""What a sweep would do, and how long it would take."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dae.envs import family_of
from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.experiments.sweep.config import SweepConfig
from dae.experiments.sweep.planned import PlannedRun
from dae.runs import RunSettings, find_runs
from dae.terminal.live import passing_lines
from dae.terminal.options import format_count
from dae.text import plural

# Of measuring, with what comes on top of it a few seconds more; each kind of run gets its share.
_SECONDS = 4.0
_LONGEST = 1.5
_MOST_LINES = 40  # of a plan that names every environment
_MEASURED = "measured just now, for a second or so: one environment of each kind; others like it count as equally fast"


class Kind(NamedTuple):
    """What makes runs differ in speed."""

    env: str
    network: str
    advantage: str
    actors: int
    implementation: str
    backend: str

    @property
    def alike(self) -> tuple[object, ...]:
        """What runs share that are about as fast: all but the game."""
        return family_of(self.env).name, *self[1:]

    def named(self, env: str) -> str:
        """Return what runs of this kind are called, in an environment or several."""
        whose = "" if self.implementation == "dae" else f" {self.implementation}"
        games = "" if self.backend == "dae" else f" {self.backend} games"
        return f"{env} {self.network} {self.advantage} {self.actors} actors{whose}{games}"

    def __str__(self) -> str:
        return self.named(self.env)


class Speed(NamedTuple):
    """Frames per second, and how they are known."""

    rate: float
    source: str


def describe_plan(config: SweepConfig, planned: list[tuple[PlannedRun, bool, int]]) -> str:
    """Return the plan, given for every run whether it is finished, and its frames so far."""
    from dae.experiments.sweep.launchers import LocalProcesses

    kinds: dict[Kind, list[_Entry]] = {}
    for run, done, frames in planned:
        kinds.setdefault(_kind(run.config), []).append(_Entry(run.config, done, frames))
    unfinished = {
        kind: next(entry.config for entry in entries if not entry.done)
        for kind, entries in kinds.items()
        if not all(entry.done for entry in entries)
    }
    speeds = speeds_of(unfinished, recorded_speeds(config.out))
    left = [
        max(0, entry.config.frames - entry.frames) / speeds[kind].rate
        for kind, entries in kinds.items()
        for entry in entries
        if not entry.done
    ]
    # Ray's cluster is not started for this: what one machine like this one would take.
    slots = min(LocalProcesses(config).slots(), max(1, len(os.sched_getaffinity(0)) // config.cpus_per_run))
    seconds = max([0.0, *left, sum(left) / slots])
    return "\n".join(
        [
            f"{plural(len(planned), 'run')} in {config.out}:",
            *_lines(kinds, speeds),
            *([_MEASURED] if any("measured" in speed.source for speed in speeds.values()) else []),
            f"about {_in_words(seconds)}, {plural(slots, 'run')} at a time on a machine like this; nothing was started",
        ]
    )


class _Entry(NamedTuple):
    """A run of a plan."""

    config: TrainConfig
    done: bool
    frames: int  # so far


def _lines(kinds: Mapping[Kind, list[_Entry]], speeds: Mapping[Kind, Speed]) -> list[str]:
    """Return a line for each kind of runs; where there are many, for those that are alike, such as all Atari games."""
    groups: dict[object, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(kind if len(kinds) <= _MOST_LINES else kind.alike, []).append(kind)
    names = [
        str(alike[0]) if len(alike) == 1 else alike[0].named(f"{len(alike)} {family_of(alike[0].env).prefix}*")
        for alike in groups.values()
    ]
    widest, lines = max(map(len, names)), []
    for name, alike in zip(names, groups.values(), strict=True):
        entries = [entry for kind in alike for entry in kinds[kind]]
        finished = sum(entry.done for entry in entries)
        begun = sum(entry.frames > 0 for entry in entries if not entry.done)
        lines.append(
            f"  {name:{widest}} {plural(len(entries), 'run'):>10} of {format_count(entries[0].config.frames)} frames: "
            f"{finished} finished, {begun} begun; {_told([speeds[kind] for kind in alike if kind in speeds])}"
        )
    return lines


def _told(speeds: list[Speed]) -> str:
    if not speeds:
        return "nothing left to do"
    rates = list(dict.fromkeys(f"{speed.rate:,.0f}" for speed in sorted(speeds)))
    return f"about {' to '.join(dict.fromkeys((rates[0], rates[-1])))} frames/s ({speeds[0].source})"


def speeds_of(kinds: Mapping[Kind, TrainConfig], known: Mapping[Kind, float]) -> dict[Kind, Speed]:
    """Return how fast runs are: as earlier ones were, of the same kind or else alike, or as one that is measured."""
    by_likeness = {kind.alike: Speed(rate, f"as {kind.env} before") for kind, rate in known.items()}
    to_measure: dict[tuple[object, ...], Kind] = {}
    for kind in kinds:
        if kind not in known and kind.alike not in by_likeness:
            to_measure.setdefault(kind.alike, kind)
    measured: dict[Kind, Speed] = {}
    if to_measure:
        with passing_lines() as show:
            show("getting ready to measure")
            from dae.experiments.sweep.measuring import measured_speed  # which loads PyTorch

            for number, (alike, kind) in enumerate(to_measure.items(), 1):
                show(f"measuring {kind} ({number} of {len(to_measure)})")
                rate = measured_speed(kinds[kind], min(_LONGEST, _SECONDS / len(to_measure)))
                measured[kind] = Speed(rate, "measured")
                by_likeness[alike] = Speed(rate, f"as {kind.env}")
    recorded = {kind: Speed(rate, "earlier runs") for kind, rate in known.items()}
    return {kind: recorded.get(kind) or measured.get(kind) or by_likeness[kind.alike] for kind in kinds}


def recorded_speeds(root: Path) -> dict[Kind, float]:
    """Return the frames per second of runs in a folder, as they were recorded; the mean of each kind."""
    speeds: dict[Kind, list[float]] = {}
    for folder in find_runs([root]) if root.is_dir() else []:
        speed = folder.read_status().frames_per_second
        if speed > 0:
            with contextlib.suppress(UserError, OSError):  # of a folder that is something else
                speeds.setdefault(_kind(folder.read_config().settings), []).append(speed)
    return {kind: sum(found) / len(found) for kind, found in speeds.items()}


def _in_words(seconds: float) -> str:
    """Say how long something takes.

    >>> _in_words(90), _in_words(3 * 3_600), _in_words(1e9)
    ('90 seconds', '3.0 hours', '31.7 years')
    """
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return plural(round(seconds), "second")


def _kind(settings: RunSettings) -> Kind:
    return Kind(**{name: getattr(settings, name) for name in Kind._fields})
