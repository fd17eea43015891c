"""Reading run folders: each becomes a small record, or a line that says why it does not count."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.runs import Episodes, Provenance, RunFolder, RunSettings, State

BINS = 100  # of the learning curve: each is 1 % of the frames, as the normalisation uses too
# What curves are drawn against: all frames until an episode ended, or those of the episodes that had ended by then.
Axis = Literal["frames", "episodes"]
AXIS_LABELS: dict[Axis, str] = {"frames": "frames", "episodes": "frames of completed episodes"}
_WORTH_PROCESSES = 64  # runs; starting processes takes as long as reading some


@dataclass(frozen=True)
class Result:
    """A finished run, reduced to what a report needs."""

    path: str
    settings: RunSettings
    made_with: Provenance
    episodes: int
    overall: float
    last: float
    curve: NDArray[np.float64]  # (BINS,): mean score of the episodes that ended in each bin, NaN where none did
    axis: Axis = "frames"


@dataclass(frozen=True)
class LeftOut:
    """A folder that does not count, and why."""

    path: str
    kind: str  # unfinished, torn, foreign, duplicate, unreadable, or without a score
    reason: str


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
        episodes = folder.read_all_episodes()
    except UserError as problem:
        return LeftOut(path, "torn", str(problem))
    if not len(episodes):
        return LeftOut(path, "without a score", "no episode has ended")
    return Result(
        path=path,
        settings=settings,
        made_with=made_with,
        episodes=len(episodes),
        overall=episodes.overall,
        last=episodes.last,
        curve=bin_scores(episodes, settings.frames, axis, settings.family.frames_per_step),
        axis=axis,
    )


def bin_scores(episodes: Episodes, budget: int, axis: Axis = "frames", frames_per_step: int = 1) -> NDArray[np.float64]:
    """Return the mean score of the episodes that ended in each 1 % of the budget, NaN where none did."""
    ended = None if axis == "frames" else episodes.lengths.cumsum() * frames_per_step
    return episodes.mean_scores(BINS, budget, ended)
