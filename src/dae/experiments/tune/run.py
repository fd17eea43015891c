"""`dae tune`: ask Optuna for values, train runs with them, give up the bad ones, tell Optuna what came out.

All that is kept is the study, one file, and the runs' folders. The same command continues both after any interruption:
trials that were under way go on from their checkpoints.
"""

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dae.errors import UserError, one_line
from dae.experiments.sweep.jobs import SECONDS_BETWEEN_LOOKS, Fleet, Job
from dae.experiments.sweep.launchers import LAUNCHERS, Launcher
from dae.experiments.tune.config import TuneConfig
from dae.experiments.tune.space import suggest
from dae.experiments.tune.study import open_study, require_optuna
from dae.experiments.tune.summary import show_values, summarise
from dae.runs import make_folder
from dae.runs.lock import FolderLock
from dae.terminal.boundary import announce
from dae.terminal.progress import WorkProgress
from dae.terminal.signals import Stopped, StopSignals
from dae.text import plural

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

_LOOKS = 20  # into the scores of a run, to give it up
_MOST_FAILURES = 10  # in a row


def tune(config: TuneConfig) -> int:
    """Search, and write what was found; return 0 if there is something."""
    require_optuna()
    make_folder(config.folder)
    with FolderLock(config.folder).held():
        study = open_study(config)
        launcher = LAUNCHERS[config.launcher](config)
        try:
            code = _Search(config, study, launcher).run()
        finally:
            launcher.close()
        if code == 0:
            print(summarise(config, study), flush=True)
            code = 1 if _best(study) is None else 0
        return code


@dataclass
class _Running:
    """A trial while its runs train."""

    trial: "Trial"
    jobs: list[Job]
    looked: int = 0  # how much of it was reported to Optuna

    @property
    def share(self) -> int:
        """How far all of its runs are, in looks."""
        return min(_LOOKS * job.frames // job.run.config.frames for job in self.jobs)

    @property
    def score(self) -> float:
        """The mean of the runs' scores by now; NaN if one has none yet."""
        scores = [math.nan if job.status.score is None else job.status.score for job in self.jobs]
        return float(np.mean(scores))


class _Search:
    """A search while it goes on."""

    def __init__(self, config: TuneConfig, study: "Study", launcher: Launcher) -> None:
        self._config, self._study, self._launcher = config, study, launcher
        self._fleet = Fleet([], launcher, config.retries)
        self._failures = 0
        self._running: list[_Running] = []

    def run(self) -> int:
        """Go on until there are as many trials as asked for."""
        print(
            f"{plural(self._config.trials, 'trial')} of {self._config.env} in {self._config.folder}, "
            f"{self._ended()} done; {plural(self._launcher.slots(), 'run')} at a time",
            flush=True,
        )
        with StopSignals(at_once=False) as signals:
            try:
                self._search(signals)
            except Stopped as stopped:
                print(f"stopped by {stopped}; the same command continues the search", flush=True)
                return stopped.exit_code
        return 0

    def _search(self, signals: StopSignals) -> None:
        try:
            with WorkProgress(self._config.trials, self._ended(), "trials") as progress:
                self._continue()
                while self._running or self._ended() < self._config.trials:
                    signals.check()
                    self._step()
                    progress.reach(self._ended(), "searching", self._news())
                    time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            self._fleet.stop()  # also what was given up, and what an error leaves behind

    def _continue(self) -> None:
        """Take up the trials that were under way when the search was interrupted."""
        from optuna.trial import Trial, TrialState

        for frozen in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            self._begin(Trial(self._study, frozen._trial_id), frozen.last_step or 0)

    def _step(self) -> None:
        self._fleet.step()
        for running in list(self._running):
            self._look_at(running)
        while self._fleet.room() > 0 and self._ended() + len(self._running) < self._config.trials:
            self._begin(self._study.ask())

    def _begin(self, trial: "Trial", looked: int = 0) -> None:
        """Plan the runs of a trial; values that do not go together make it a failed one."""
        try:
            runs = self._config.runs_of(trial.number, suggest(self._config.parsed_space, trial))
        except UserError as error:
            self._fail(trial, one_line(error))
            return
        running = _Running(trial, [Job(run) for run in runs], looked)
        self._running.append(running)
        self._fleet.jobs.extend(running.jobs)

    def _look_at(self, running: _Running) -> None:
        """Report how a trial stands to Optuna, and end it if it has ended or is to be given up."""
        from optuna.trial import TrialState

        failed = [job for job in running.jobs if job.state == "failed"]
        if failed:
            self._end(running)
            self._fail(running.trial, failed[0].problem)
        elif all(job.state == "finished" for job in running.jobs):
            self._end(running)
            self._finish(running)
        elif running.share > running.looked and not math.isnan(running.score):
            running.looked = running.share
            running.trial.report(running.score, running.looked)
            if running.trial.should_prune():
                self._end(running)
                self._failures = 0
                self._study.tell(running.trial, state=TrialState.PRUNED)
                self._say(running.trial, f"given up at {running.score:.4g}")

    def _finish(self, running: _Running) -> None:
        episodes = [job.run.folder.read_episodes() for job in running.jobs]
        score = float(np.mean([getattr(of_run, self._config.objective) for of_run in episodes]))
        if math.isnan(score):
            self._fail(running.trial, "no episode has ended")
            return
        self._failures = 0
        self._study.tell(running.trial, score)
        self._say(running.trial, f"score {score:.4g}")

    def _fail(self, trial: "Trial", problem: str) -> None:
        from optuna.trial import TrialState

        self._failures += 1
        trial.set_user_attr("problem", problem)
        self._study.tell(trial, state=TrialState.FAIL)
        announce(f"trial {trial.number} failed ({show_values(trial.params)}): {problem}")
        if self._failures >= _MOST_FAILURES:
            raise UserError(f"{self._failures} trials in a row have failed; the last: {problem}")

    def _end(self, running: _Running) -> None:
        for job in running.jobs:
            self._fleet.drop(job)
        self._running.remove(running)

    def _ended(self) -> int:
        return sum(trial.state.is_finished() for trial in self._study.get_trials(deepcopy=False))

    def _news(self) -> str:
        best = _best(self._study)
        return "no score yet" if best is None else f"best {best:.4g}"

    def _say(self, trial: "Trial", what: str) -> None:
        print(f"trial {trial.number}: {what}, {show_values(trial.params)}", flush=True)


def _best(study: "Study") -> float | None:
    from optuna.trial import TrialState

    scores = [t.value for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if t.value is not None]
    return max(scores, default=None)
