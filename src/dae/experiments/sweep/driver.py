"""`dae sweep`: start what is missing, watch it, and start it again when it dies.

A sweep stores nothing but its run folders. The state of a run is read there, and the process that holds its lock
trains it: so the same command continues after any interruption, and takes over the runs of dead processes.
"""

import importlib
import sys
import time

from dae.envs import family_of, plain_id
from dae.experiments.sweep.config import SweepConfig, planned_runs, suites
from dae.experiments.sweep.display import SweepDisplay
from dae.experiments.sweep.estimate import describe_plan
from dae.experiments.sweep.grid import summarise_grid
from dae.experiments.sweep.jobs import SECONDS_BETWEEN_LOOKS, Fleet, Job
from dae.experiments.sweep.launchers import LAUNCHERS, Launcher
from dae.runs import make_folder
from dae.runs.settings import require_same
from dae.terminal.signals import Stopped, StopSignals
from dae.text import plural


def sweep(config: SweepConfig) -> int:
    """Train all runs of a sweep; return 0 if all of them finished."""
    jobs = [Job(run) for run in planned_runs(config)]
    for job in jobs:
        if job.run.folder.exists:
            stored = job.run.folder.read_config().settings
            given = job.run.config.to_json() | {"extended_from": stored.extended_from}  # as `dae train` takes it
            require_same(job.run.folder.path, stored.to_json(), given)
        job.look()
    for env in dict.fromkeys(job.run.config.env for job in jobs):
        family_of(env).require_known(plain_id(env))
    if config.dry_run:
        print(describe_plan(config, [(job.run, job.state == "finished", job.frames) for job in jobs]))
        return 0
    launcher = LAUNCHERS[config.launcher](config)
    try:
        make_folder(config.out)
        return _Sweep(config, jobs, launcher).run()
    finally:
        launcher.close()


class _Sweep:
    """A sweep while it runs."""

    def __init__(self, config: SweepConfig, jobs: list[Job], launcher: Launcher) -> None:
        self._config, self._jobs, self._launcher = config, jobs, launcher
        self._fleet = Fleet(jobs, launcher, config.retries)
        self._display = SweepDisplay(sum(job.run.config.frames for job in jobs), self._frames())

    def run(self) -> int:
        """Go on until every run has finished or failed."""
        print(f"{plural(len(self._jobs), 'run')} in {self._config.out}, {self._launcher.slots()} at a time", flush=True)
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
            while any(job.is_open for job in self._jobs):
                signals.check()
                self._fleet.step()
                self._display.update(self._jobs, self._frames())
                time.sleep(SECONDS_BETWEEN_LOOKS)
        except Stopped:
            self._display.note("stopping: waiting for the runs to write their checkpoints")
            self._fleet.stop()
            raise

    def _frames(self) -> int:
        return sum(min(job.frames, job.run.config.frames) for job in self._jobs)

    def _conclude(self) -> int:
        failed = [job for job in self._jobs if job.state == "failed"]
        print(f"{len(self._jobs) - len(failed)} of {plural(len(self._jobs), 'run')} finished, in {self._config.out}")
        for job in failed:
            print(f"dae: {job.run.name} failed: {job.problem}; log: {job.run.folder.log}", file=sys.stderr)
        summary = suites()[self._config.suite].summary if self._config.suite else ""
        if summary and not failed:
            module, _, function = summary.partition(":")
            folders = [job.run.folder for job in self._jobs]
            print(getattr(importlib.import_module(module), function)(self._config.out, folders))
        if self._config.grid and not failed:
            print(summarise_grid(self._config.out, [job.run for job in self._jobs]))
        if not failed:
            print(f"next: dae report {self._config.out}     tables and figures")
        return 1 if failed else 0
