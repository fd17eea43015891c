"""The options of `dae quality`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from dae.catalog import estimator_names, require_estimator
from dae.errors import UserError
from dae.experiments.config import THREADS
from dae.rules import COUNT, EACH_ONCE, ENOUGH, HORIZON, NATURAL, ruled
from dae.runs.settings import SEED
from dae.terminal.options import COUNT_WORD, choice, optional_words


@dataclass(frozen=True)
class QualityConfig:
    """Measure how good an agent's advantages are, against Monte-Carlo truth.

    Besides the agent's own critic, one of each estimator is trained anew for the same policy, from the same rollouts.

        dae quality runs/MinAtar-Breakout-v1/dae-baseline/seed-0
        dae quality runs --estimators dae gae --states 256
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, optional_words("RUNS ...")] = ()
    """Folders of runs, or folders with runs in them."""
    estimators: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar=f"{choice(estimator_names())} ...", help_behavior_hint="(default: all)")
    ] = ruled((), EACH_ONCE)
    """Estimators to compare with."""
    states: Annotated[int, COUNT_WORD] = ruled(128, COUNT)
    """States of the agent's play to look at."""
    rollouts: Annotated[int, COUNT_WORD] = ruled(64, ENOUGH)
    """Monte-Carlo rollouts for each action in each state, which are the truth."""
    horizon: int = ruled(512, HORIZON)
    """Steps of a rollout at most."""
    steps: Annotated[int, COUNT_WORD] = ruled(400_000, NATURAL)
    """Steps of the agent that the new critics learn from; 0 leaves them as they begin."""
    probes: int = ruled(4, COUNT)
    """Further rollouts for each action in each state, from which each critic estimates its advantage."""
    best: bool = False
    """Take the agent that had the best evaluation (`dae train --eval-every`) instead of the newest."""
    seed: int = ruled(0, SEED)
    """Seed of everything."""
    threads: int = ruled(0, THREADS)
    """CPU threads of PyTorch; 0 leaves the choice to PyTorch."""
    out: Annotated[Path | None, optional_words("FOLDER")] = None
    """Folder for the results; by default `quality` in each run's folder."""
    trust: bool = False
    """Import the module that a run's environment names (mymodule:MyEnv-v0)."""

    def require_consistent(self) -> None:
        """Refuse a command without a run, and estimators that there are not."""
        if not self.runs:
            raise UserError("dae quality needs one more word: the folder of a run; see dae quality --help")
        for name in self.estimators:
            require_estimator(name)

    def to_json(self) -> dict[str, Any]:
        """Return the settings that decide the numbers."""
        settings = dataclasses.asdict(self)
        return {name: settings[name] for name in _DECIDING} | {"estimators": list(self.estimators)}


_DECIDING = ("states", "rollouts", "horizon", "steps", "probes", "best", "seed")
