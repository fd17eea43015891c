"""Sweeps of small runs, and what kills them."""

import contextlib
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from dae.cli import main
from dae.experiments.sweep.config import PlannedRun, SweepConfig, planned_runs
from dae.experiments.sweep.launchers import LocalProcesses
from dae.runs import RunFolder, find_runs
from dae.terminal.options import read_options
from tests.experiments.small import Outcome, outcome
from tests.processes import Fork, wait_until

SMALL = ("actors=4", "steps=32", "batch_size=64", "epochs=2", "checkpoint_seconds=0")


def cartpoles(out: Path, *words: str, frames: str = "3K", seeds: str = "1") -> list[str]:
    return [
        *("--envs", "CartPole-v1", "--preset", "quick", "--seeds", seeds, "--jobs", "2", "--out", str(out)),
        *("--settings", *SMALL, f"frames={frames}", *words),
    ]


def read(words: list[str]) -> SweepConfig:
    return read_options(SweepConfig, "dae sweep", words)


def start_driver(words: list[str], log: Path) -> Fork:
    command = [sys.executable, "-m", "dae", "sweep", *words]
    return Fork(lambda: os.execv(sys.executable, command), log)  # type: ignore[arg-type, func-returns-value]


class Forks(LocalProcesses):
    """Local processes that need not import everything again."""

    def start(self, run: PlannedRun) -> "Fork":
        return Fork(lambda: main(["train", *run.words]), run.folder.log)

    def exit_code(self, handle: "Fork") -> int | None:
        return handle.exit_code()

    def stop(self, handle: "Fork") -> None:
        os.kill(handle.pid, signal.SIGTERM)


def outcomes(config: SweepConfig) -> dict[str, Outcome]:
    return {run.name: outcome(run.folder) for run in planned_runs(config)}


def owner(folder: RunFolder) -> int | None:
    """The process that trains a run."""
    found = re.search(r"\d+", folder.lock.path.read_text()) if folder.is_locked() else None
    return int(found.group()) if found else None


def workers(root: Path) -> list[int]:
    """The processes that train in a folder."""
    return [pid for pid in map(owner, find_runs([root])) if pid is not None]


def killed_until_done(start_driver: Callable[[], Fork], root: Path, *, kills: int, slowest: float) -> list[str]:
    """Kill workers and drivers in turn at random moments, then let the sweep end; return who was really killed."""
    rng = random.Random(0)
    killed: list[str] = []
    driver = start_driver()
    for victim in islice(cycle(["worker", "driver", "worker"]), kills):
        time.sleep(rng.uniform(0.0, slowest))
        if victim == "driver":
            os.kill(driver.pid, signal.SIGKILL)
            if driver.wait() == -signal.SIGKILL:
                killed.append(victim)
            driver = start_driver()
        else:
            wait_until(lambda driver=driver: bool(workers(root)) or driver.exit_code() is not None)
            if driver.exit_code() is not None:
                break
            with contextlib.suppress(ProcessLookupError, IndexError):  # the run has just ended
                os.kill(rng.choice(workers(root)), signal.SIGKILL)
                killed.append(victim)
    assert driver.wait(300) == 0
    return killed


def finished(folder: RunFolder) -> bool:
    return bool(folder.read_status().state == "finished")
