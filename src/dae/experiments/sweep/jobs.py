"""Runs as those see them who have them trained: started, watched, and started again when they die."""

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from dae.errors import InUse, UserError, one_line
from dae.experiments.sweep.launchers import Launcher
from dae.experiments.sweep.planned import PlannedRun
from dae.files import read_file
from dae.runs import State, Status
from dae.text import plural

SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_STOP = 120.0
_LARGEST_LOG = 2**26
Standing = Literal["waiting", "running", "elsewhere", "finished", "failed", "dropped"]


@dataclass
class Job:
    """A run and how it stands."""

    run: PlannedRun
    state: Standing = "waiting"
    handle: Any = None
    frames: int = 0  # when it was last looked at
    frames_at_start: int = 0  # of its checkpoint
    deaths: int = 0  # in a row, without having got further
    problem: str = ""
    wanted: bool = True  # False: once stopped it is not started again
    status: Status = field(default_factory=Status)

    def look(self) -> bool:
        """Read how the run stands; return whether it has finished."""
        self.status = self.run.folder.read_status() if self.run.folder.exists else Status()
        self.frames = self.status.frames
        if self.status.state is State.FINISHED:
            self.state, self.frames = "finished", self.run.config.frames
        return self.state == "finished"

    @property
    def is_open(self) -> bool:
        """Whether there is still something to do."""
        return self.state in ("waiting", "running", "elsewhere")


class Fleet:
    """Jobs and who trains them; more can be added at any time."""

    def __init__(self, jobs: list[Job], launcher: Launcher, retries: int) -> None:
        self.jobs, self._launcher, self._retries = jobs, launcher, retries

    def step(self) -> None:
        """Look at the running ones, and start others where there is room."""
        for job in self.jobs:
            if job.state == "running":
                job.look()
                self._collect(job)
        self._start_waiting()

    def room(self) -> int:
        """Return how many more there is room for, beside those that are running or waiting."""
        return self._launcher.slots() - sum(job.is_open for job in self.jobs)

    def drop(self, job: Job) -> None:
        """Stop a run that nobody wants any more."""
        job.wanted = False
        if job.handle is not None:
            self._launcher.stop(job.handle)
        elif job.is_open:
            job.state = "dropped"

    def stop(self) -> None:
        """Ask all runs to write a checkpoint, and wait for them."""
        running = [job for job in self.jobs if job.handle is not None]
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while running and time.monotonic() < deadline:
            for job in running:  # again and again: a process that is still starting may not notice
                self._launcher.stop(job.handle)
            time.sleep(SECONDS_BETWEEN_LOOKS)
            running = [job for job in running if self._launcher.exit_code(job.handle) is None]

    def _collect(self, job: Job) -> None:
        """Check whether a run has ended, and set its state by how it ended."""
        code = self._launcher.exit_code(job.handle)
        if code is None:
            job.state = "running"  # even if its status is finished: its process still has a little to do
            if not job.wanted:
                self._launcher.stop(job.handle)
            return
        job.handle = None
        taken = job.run.folder.is_locked()
        if job.look():
            return
        job.state = "waiting" if job.wanted else "dropped"
        if not job.wanted or taken or code == InUse.exit_code:
            return  # another process has the run; check it again later
        if code >= 0 and code not in (130, 143):
            job.state, job.problem = "failed", _last_words(job)
            return
        job.deaths = 0 if job.run.folder.checkpoints.newest_frames() > job.frames_at_start else job.deaths + 1
        if job.deaths > self._retries:
            died = f"died {plural(job.deaths, 'time')} without making progress (exit code {code})"
            job.state, job.problem = "failed", died

    def _start_waiting(self) -> None:
        free = self._launcher.slots() - sum(job.state == "running" for job in self.jobs)
        for job in self.jobs:
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


def _last_words(job: Job) -> str:
    """Return the last line of a run's log: the error that it ended with."""
    try:
        lines = read_file(job.run.folder.log, _LARGEST_LOG).decode(errors="replace").split("\n")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")
