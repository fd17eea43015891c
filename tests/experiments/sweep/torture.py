"""Sweeps of small runs, and what kills them."""

import contextlib
import os
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from dae.cli import main
from dae.experiments.sweep.config import PlannedRun, SweepConfig, planned_runs
from dae.experiments.sweep.launchers import LocalProcesses
from dae.runs import RunFolder, find_runs
from tests.experiments.small import Outcome, outcome

SMALL = ("actors=4", "steps=32", "batch_size=64", "epochs=2", "checkpoint_seconds=0")


class Forks(LocalProcesses):
    """Local processes that need not import everything again."""

    def start(self, run: PlannedRun) -> "Fork":
        return Fork(lambda: main(["train", *run.words]), run.folder.log)

    def exit_code(self, handle: "Fork") -> int | None:
        return handle.exit_code()

    def stop(self, handle: "Fork") -> None:
        os.kill(handle.pid, signal.SIGTERM)


class Fork:
    """A function in a process of its own, with its output in a file."""

    def __init__(self, what: Callable[[], int], log: Path) -> None:
        self._ended: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.setsid()
                sys.stdout = sys.stderr = log.open("a", buffering=1)
                os.dup2(sys.stdout.fileno(), 1)
                os.dup2(sys.stdout.fileno(), 2)
                code = what()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)

    def exit_code(self) -> int | None:
        if self._ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._ended = os.waitstatus_to_exitcode(status) if pid else None
        return self._ended

    def wait(self, seconds: float = 120) -> int:
        wait_until(lambda: self.exit_code() is not None, seconds)
        assert self._ended is not None
        return self._ended


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.02)


def has_checkpoint(folder: RunFolder) -> bool:
    return folder.checkpoints.newest_frames() > 0


def outcomes(config: SweepConfig) -> dict[str, Outcome]:
    return {run.name: outcome(run.folder) for run in planned_runs(config)}


def workers(root: Path) -> list[int]:
    """The processes that train in a folder."""
    locks = [(folder.path / "lock") for folder in find_runs([root]) if folder.is_locked()]
    found = [re.search(r"\d+", path.read_text()) for path in locks]
    return [int(match.group()) for match in found if match]


def killed_until_done(start_driver: Callable[[], Fork], root: Path, *, kills: int, slowest: float) -> list[str]:
    """Kill workers and drivers in turn at random moments, then let the sweep end; return who was killed."""
    rng = random.Random(0)
    killed: list[str] = []
    driver = start_driver()
    for victim in islice(cycle(["worker", "driver", "worker"]), kills):
        time.sleep(rng.uniform(0.0, slowest))
        if victim == "driver":
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            driver = start_driver()
        else:
            while not (training := workers(root)) and driver.exit_code() is None:
                time.sleep(0.01)
            if driver.exit_code() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(training), signal.SIGKILL)
        killed.append(victim)
    assert driver.wait(300) == 0
    return killed


def finished(folder: RunFolder) -> bool:
    return bool(folder.read_status().state == "finished")
