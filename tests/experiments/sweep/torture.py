"""Sweeps of small runs, and what kills them."""

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from dae.cli import main
from dae.experiments.sweep.config import PlannedRun, SweepConfig, planned_runs
from dae.experiments.sweep.launchers import LocalProcesses
from dae.runs import RunFolder, find_runs
from tests.experiments.small import Outcome, outcome
from tests.processes import Fork, wait_until

SMALL = ("actors=4", "steps=32", "batch_size=64", "epochs=2", "checkpoint_seconds=0")


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


def workers(root: Path) -> list[int]:
    """The processes that train in a folder."""
    locks = [(folder.path / "lock") for folder in find_runs([root]) if folder.is_locked()]
    found = [re.search(r"\d+", path.read_text()) for path in locks]
    return [int(match.group()) for match in found if match]


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
