"""A launcher for tests: runs are trained by forks of this process, which have nothing to import."""

import os
import signal
from pathlib import Path

from dae.experiments.config import parse
from dae.experiments.sweep.launchers import Launcher
from dae.experiments.sweep.launching import Launching
from dae.experiments.sweep.planned import PlannedRun
from dae.experiments.training.run import train
from tests.processes import Fork


class Forks(Launcher):
    """Two at a time."""

    def __init__(self, config: Launching) -> None:
        self.started: list[str] = []

    def slots(self) -> int:
        return 2

    def start(self, run: PlannedRun) -> Fork:
        self.started.append(run.name)
        return Fork(lambda: train(parse(list(run.words))), Path(run.folder.log))

    def exit_code(self, handle: Fork) -> int | None:
        return handle.exit_code()

    def stop(self, handle: Fork) -> None:
        if handle.exit_code() is None:
            os.kill(handle.pid, signal.SIGTERM)
