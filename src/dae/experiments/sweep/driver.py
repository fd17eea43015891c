"""`dae sweep`: start what is missing, watch it, and start it again when it dies.

A sweep stores nothing but its run folders. The state of a run is read there, and the process that holds its lock
trains it: so the same command continues after any interruption, and takes over the runs of dead processes.
"""

import importlib
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from dae.envs import family_of
from dae.errors import InUse, UserError, one_line
from dae.experiments.sweep.config import PlannedRun, SweepConfig, planned_runs, suites
from dae.experiments.sweep.display import SweepDisplay
from dae.experiments.sweep.estimate import describe_plan
from dae.experiments.sweep.launchers import LAUNCHERS, Launcher
from dae.files import read_file
from dae.runs import State, Status, make_folder
from dae.runs.settings import require_same
from dae.terminal.signals import Stopped, StopSignals

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_STOP = 120.0
_LARGEST_LOG = 2**26
Standing = Literal["waiting", "running", "elsewhere", "finished", "failed"]


@dataclass
class Job:
    """A run as the sweep sees it."""

    run: PlannedRun
    state: Standing = "waiting"
    handle: Any = None
    frames: int = 0  # when it was last looked at
    frames_at_start: int = 0  # of its checkpoint
    deaths: int = 0  # in a row, without having got further
    problem: str = ""
    status: Status = field(default_factory=Status)

    def look(self) -> bool:
        """Read how the run stands; return whether it has finished."""
        self.status = self.run.folder.read_status() if self.run.folder.exists else Status()
        self.frames = self.status.frames
        if self.status.state is State.FINISHED:
            self.state, self.frames = "finished", self.run.config.frames
        return self.state == "finished"


def sweep(config: SweepConfig) -> int:
    """Train all runs of a sweep; return 0 if all of them finished."""
    jobs = [Job(run) for run in planned_runs(config)]
    for job in jobs:
        if job.run.folder.exists:
            stored = job.run.folder.read_config().settings
            require_same(job.run.folder.path, stored.to_json(), job.run.config.to_json())
        job.look()
    for env in dict.fromkeys(job.run.config.env for job in jobs):
        family_of(env).require_known(env)
    if config.dry_run:
        print(describe_plan(config, [(job.run, job.state == "finished", job.frames) for job in jobs]))
        return 0
    make_folder(config.out)
    launcher = LAUNCHERS[config.launcher](config)
    try:
        return _Sweep(config, jobs, launcher).run()
    finally:
        launcher.close()


class _Sweep:
    """A sweep while it runs."""

    def __init__(self, config: SweepConfig, jobs: list[Job], launcher: Launcher) -> None:
        self._config, self._jobs, self._launcher = config, jobs, launcher
        self._display = SweepDisplay(sum(job.run.config.frames for job in jobs), self._frames())

    def run(self) -> int:
        """Go on until every run has finished or failed."""
        print(f"{len(self._jobs)} runs in {self._config.out}, {self._launcher.slots()} at a time", flush=True)
        # Signals are noted, and handled between two checks of the runs: never while a run is being started.
        with StopSignals(at_once=False) as signals:
            try:
                with self._display:
                    self._watch(signals)
            except Stopped as stopped:
                saved = sum(job.run.folder.checkpoints.newest_frames() for job in self._jobs)
                print(
                    f"stopped by {stopped}; the same command continues every run at its newest checkpoint, with "
                    f"{saved:,} frames done in all",
                    flush=True,
                )
                return stopped.exit_code
        return self._conclude()

    def _watch(self, signals: StopSignals) -> None:
        try:
            while any(job.state in ("waiting", "running", "elsewhere") for job in self._jobs):
                signals.check()
                self._step()
        except Stopped:
            self._display.note("stopping: waiting for the runs to write their checkpoints")
            self._stop()
            raise

    def _step(self) -> None:
        for job in self._jobs:
            if job.state == "running":
                job.look()
                self._collect(job)
        self._start_waiting()
        self._display.update(self._jobs, self._frames())
        time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _collect(self, job: Job) -> None:
        """Check whether a run has ended, and set its state by how it ended."""
        code = self._launcher.exit_code(job.handle)
        if code is None:
            job.state = "running"  # even if its status is finished: its process still has a little to do
            return
        job.handle = None
        taken = job.run.folder.is_locked()
        if job.look():
            return
        job.state = "waiting"
        if taken or code == InUse.exit_code:
            return  # another process has the run; check it again later
        if code >= 0 and code not in (130, 143):
            job.state, job.problem = "failed", _last_words(job)
            return
        job.deaths = 0 if job.run.folder.checkpoints.newest_frames() > job.frames_at_start else job.deaths + 1
        if job.deaths > self._config.retries:
            job.state, job.problem = "failed", f"died {job.deaths} times without making progress (exit code {code})"

    def _start_waiting(self) -> None:
        free = self._launcher.slots() - sum(job.state == "running" for job in self._jobs)
        for job in self._jobs:
            if free <= 0:
                return
            if job.state not in ("waiting", "elsewhere"):
                continue
            if job.look():
                continue
            if job.run.folder.is_locked():
                job.state = "elsewhere"
                continue
            try:
                job.run.folder.make()
                job.run.folder.require_plain()
            except UserError as error:
                job.state, job.problem = "failed", one_line(error)
                continue
            job.frames_at_start = job.run.folder.checkpoints.newest_frames()
            job.handle, job.state = self._launcher.start(job.run), "running"
            free -= 1

    def _stop(self) -> None:
        """Ask all runs to write a checkpoint, and wait for them."""
        running = [job for job in self._jobs if job.handle is not None]
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while running and time.monotonic() < deadline:
            for job in running:  # again and again: a process that is still starting may not notice
                self._launcher.stop(job.handle)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            running = [job for job in running if self._launcher.exit_code(job.handle) is None]

    def _frames(self) -> int:
        return sum(min(job.frames, job.run.config.frames) for job in self._jobs)

    def _conclude(self) -> int:
        failed = [job for job in self._jobs if job.state == "failed"]
        print(f"{len(self._jobs) - len(failed)} of {len(self._jobs)} runs finished, in {self._config.out}")
        for job in failed:
            print(f"dae: {job.run.name} failed: {job.problem}; log: {job.run.folder.log}", file=sys.stderr)
        summary = suites()[self._config.suite].summary if self._config.suite else ""
        if summary and not failed:
            module, _, function = summary.partition(":")
            folders = [job.run.folder for job in self._jobs]
            print(getattr(importlib.import_module(module), function)(self._config.out, folders))
        return 1 if failed else 0


def _last_words(job: Job) -> str:
    """Return the last line of a run's log: the error that it ended with."""
    try:
        lines = read_file(job.run.folder.log, _LARGEST_LOG).decode(errors="replace").split("\n")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")
