"""Reading run folders: each becomes a small record, or a line that says why it does not count."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.report.paper import domain_of
from dae.runs import Episodes, RunFolder, RunProblem

BINS = 100  # of the learning curve: each is 1 % of the frames, which the normalisation speaks of too
_NEEDED = {"env": str, "advantage": str, "network": str, "seed": int, "frames": int}
_LARGEST = 2**53
_SIGNS = {"config.json", "status.json", "monitor.csv"}
_NOT_RUNS = {"checkpoints", "tensorboard"}
_WORTH_PROCESSES = 64  # runs; starting processes takes as long as reading some


@dataclass(frozen=True)
class Run:
    """A finished run, reduced to what a report needs."""

    path: str
    settings: dict[str, Any]
    made_with: dict[str, Any]
    episodes: int
    overall: float
    last: float
    curve: NDArray[np.float64]  # (BINS,): mean score of the episodes that ended in each bin, NaN where none did

    @property
    def env(self) -> str:
        return str(self.settings["env"])

    @property
    def domain(self) -> str:
        return domain_of(self.env)

    @property
    def method(self) -> str:
        return str(self.settings["advantage"])

    @property
    def network(self) -> str:
        return str(self.settings["network"])

    @property
    def seed(self) -> int:
        return int(self.settings["seed"])

    @property
    def frames(self) -> int:
        return int(self.settings["frames"])


@dataclass(frozen=True)
class LeftOut:
    """A folder that does not count, and why."""

    path: str
    kind: str  # unfinished, torn, foreign, duplicate, or without a score
    reason: str


def find_folders(roots: Sequence[Path]) -> list[Path]:
    """Return every folder at or below the roots that has a file of a run in it, by path."""
    found: dict[Path, Path] = {}
    for root in roots:
        if not root.is_dir():
            raise RunProblem(f"there is no folder {root}; name the folder that runs are kept in")
        for place, inside, files in os.walk(root):
            inside[:] = [name for name in inside if name not in _NOT_RUNS]
            if _SIGNS & set(files):
                found.setdefault(Path(place).resolve(), Path(place))
    return sorted(found.values())


def read_runs(folders: Sequence[Path], tell: Callable[[], None] = lambda: None) -> list[Run | LeftOut]:
    """Read all folders, on every core if there are many; `tell` is called after each."""
    records = []
    if len(folders) < _WORTH_PROCESSES:
        for folder in folders:
            records.append(read_run(folder))
            tell()
        return records
    # A new interpreter each: a fork would copy the thread that draws the progress bar.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        for record in pool.map(read_run, folders, chunksize=8):
            records.append(record)
            tell()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C what is not begun is not read
    return records


def read_run(path: Path) -> Run | LeftOut:
    """Read one folder."""
    folder = RunFolder(path)
    if not folder.exists:
        return LeftOut(str(path), "torn", "it has no config.json")
    try:
        config = folder.read_config()
        settings = _checked(config["settings"])
    except (RunProblem, ValueError) as problem:
        return LeftOut(str(path), "foreign", str(problem))
    except OSError as problem:
        return LeftOut(str(path), "torn", str(problem))
    status = folder.read_status()
    if status.get("state") != "finished":
        done = status.get("frames")
        so_far = f" after {done:,} of {settings['frames']:,} frames" if isinstance(done, int) else ""
        return LeftOut(str(path), "unfinished", f"{status.get('state', 'unknown')}{so_far}")
    try:
        episodes = _whole(folder, status)
    except (RunProblem, OSError) as problem:
        return LeftOut(str(path), "torn", str(problem))
    if not len(episodes):
        return LeftOut(str(path), "without a score", "no episode has ended")
    return Run(
        path=str(path),
        settings=settings,
        made_with=config["made_with"],
        episodes=len(episodes),
        overall=episodes.overall,
        last=episodes.last,
        curve=bin_scores(episodes, settings["frames"]),
    )


def bin_scores(episodes: Episodes, budget: int) -> NDArray[np.float64]:
    """Return the mean score of the episodes that ended in each 1 % of the budget, NaN where none did.

    What ends after the last frame of the budget (the last iteration, and the finishing phase) is in the last bin.
    """
    place = np.clip((episodes.frames - 1) * BINS // budget, 0, BINS - 1)
    count = np.bincount(place, minlength=BINS)
    total = np.bincount(place, episodes.scores, BINS)
    means: NDArray[np.float64] = np.divide(total, count, out=np.full(BINS, np.nan), where=count > 0)
    return means


def _checked(settings: Any) -> dict[str, Any]:
    """Return the settings if they have what a report is ordered by."""
    for name, kind in _NEEDED.items():
        if type(settings.get(name)) is not kind:
            raise ValueError(f"its setting {name} is {settings.get(name)!r}")
    if not 1 <= settings["frames"] < _LARGEST or settings["seed"] < 0:
        raise ValueError(f"its frames are {settings['frames']}, its seed is {settings['seed']}")
    return dict(settings)


def _whole(folder: RunFolder, status: dict[str, Any]) -> Episodes:
    """Return the episodes of a finished run; it has written all of them, so that a cut in the file is damage."""
    if not folder.monitor.is_file():
        raise RunProblem("it has no monitor.csv")
    episodes = folder.read_episodes()
    with folder.monitor.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read() != b"\n":
            raise RunProblem("its monitor.csv ends within a line")
    told = status.get("episodes")
    if isinstance(told, int) and told != len(episodes):
        raise RunProblem(f"its monitor.csv has {len(episodes):,} episodes, its status.json {told:,}")
    return episodes
