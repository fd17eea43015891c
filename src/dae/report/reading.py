"""Reading run folders: each becomes a small record, or a line that says why it does not count."""

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.report.text import plural
from dae.runs import Axis, Digest, Provenance, RunFolder, RunSettings, State

AXIS_LABELS: dict[Axis, str] = {"frames": "frames", "episodes": "frames of completed episodes"}
_WORTH_PROCESSES = 64  # runs; starting processes takes as long as reading some


@dataclass(frozen=True)
class Result:
    """A finished run, reduced to what a report needs."""

    path: str
    settings: RunSettings
    made_with: Provenance
    digest: Digest
    axis: Axis = "frames"

    @property
    def overall(self) -> float:
        return self.digest.overall

    @property
    def last(self) -> float:
        return self.digest.last

    @cached_property
    def curve(self) -> NDArray[np.float64]:
        """Mean score of the episodes that ended in each bin, NaN where none did."""
        return self.digest.curve(self.axis)


@dataclass(frozen=True)
class LeftOut:
    """A folder that does not count, and why."""

    path: str
    kind: str  # one of KINDS
    reason: str


KINDS = ("unfinished", "torn", "foreign", "duplicate", "unreadable", "without a score")


def count_left_out(left_out: Sequence[LeftOut]) -> str:
    """Say how many folders do not count: "left out: 1 unfinished, 2 torn"."""
    kinds = Counter(left.kind for left in left_out)
    told = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
    return f"left out: {told}" if told else "no folder left out"


def require_some(records: "Sequence[Result | LeftOut]") -> None:
    """Refuse folders of which none counts."""
    if any(isinstance(record, Result) for record in records):
        return
    left_out = [record for record in records if isinstance(record, LeftOut)]
    first = min(left_out, key=lambda left: (KINDS.index(left.kind), left.path), default=None)
    why = f"; the first: {first.path}: {first.reason}" if first else ""
    raise UserError(
        f"no finished run among {plural(len(records), 'folder')}{why}; let `dae train` finish some, "
        "or name another folder"
    )


def read_results(
    folders: Sequence[RunFolder], tell: Callable[[], None] = lambda: None, axis: Axis = "frames"
) -> list[Result | LeftOut]:
    """Read all folders, on every core if there are many; `tell` is called after each."""
    records = []
    read = partial(read_result, axis=axis)
    if len(folders) < _WORTH_PROCESSES:
        for folder in folders:
            records.append(read(folder))
            tell()
        return records
    # A new interpreter each: a fork would copy the thread that draws the progress bar.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        for record in pool.map(read, folders, chunksize=8):
            records.append(record)
            tell()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C, read no further folders
    return records


def read_result(folder: RunFolder, axis: Axis = "frames") -> Result | LeftOut:
    """Read one folder; whatever is wrong with it, others can still be read."""
    try:
        return _read_result(folder, axis)
    except OSError as problem:
        return LeftOut(str(folder.path), "unreadable", one_line(problem))


def _read_result(folder: RunFolder, axis: Axis) -> Result | LeftOut:
    path = str(folder.path)
    if not folder.exists:
        return LeftOut(path, "torn", "it has no config.json")
    try:
        settings, made_with = folder.read_config()
    except UserError as problem:
        return LeftOut(path, "foreign", str(problem))
    status = folder.read_status()
    if status.state is State.UNKNOWN:
        return LeftOut(path, "torn", status.error or "its status is unknown")
    if status.state is not State.FINISHED:
        so_far = f" after {status.frames:,} of {settings.frames:,} frames" if status.frames else ""
        return LeftOut(path, "unfinished", f"{status.state}{so_far}")
    try:
        digest = folder.read_digest(settings)
    except UserError as problem:
        return LeftOut(path, "torn", str(problem))
    if digest is None:
        return LeftOut(path, "without a score", "no episode has ended")
    return Result(path, settings, made_with, digest, axis)
