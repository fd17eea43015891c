"""The study of one game: its folder, its training, its rollouts, and what came of them."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from dae.errors import UserError, one_line
from dae.experiments.arrays import Damaged
from dae.experiments.provenance import made_with
from dae.experiments.training.run import train
from dae.experiments.variation.changes import Changes
from dae.experiments.variation.config import StudyPlan
from dae.experiments.variation.keeping import Keeper, Kept, Places
from dae.experiments.variation.simulating import simulator_of
from dae.experiments.variation.summary import Result
from dae.experiments.variation.values import Measured, Measuring, read_measured, write_measured
from dae.files import read_file, write_atomically
from dae.runs import RunFolder
from dae.runs.settings import require_same
from dae.serialization import BadData, parse_json
from dae.terminal.boundary import announce
from dae.terminal.progress import WorkProgress

_LARGEST_SETTINGS = 2**20  # bytes


class Study:
    """One game's part of `dae variation`."""

    def __init__(self, plan: StudyPlan) -> None:
        self.plan = plan
        self._run = RunFolder(plan.training.folder)
        self._kept = Kept(plan.folder, plan.config.iterations)
        self._policies = range(plan.config.iterations)
        self._settings = plan.folder / "settings.json"

    def file(self, name: str) -> Path:
        """Return a file of the study."""
        return self.plan.folder / name

    def _values(self, policy: int) -> Path:
        return self.plan.folder / "values" / f"{policy:04d}.npz"

    @property
    def iterations_left(self) -> int:
        """Iterations that are still to be trained."""
        kept = self._kept.first_missing
        return 0 if kept == len(self._policies) else len(self._policies) - min(kept, self._iterations_trained)

    @property
    def policies_left(self) -> int:
        """Policies that are still to be measured, unless more of their files turn out to be damaged."""
        return sum(not self._values(policy).exists() for policy in self._policies)

    @property
    def _iterations_trained(self) -> int:
        """Iterations whose rollouts a checkpoint has behind it."""
        return self._run.checkpoints.newest_frames() // self.plan.frames_per_iteration

    # The folder. ------------------------------------------------------------------------------------------------------

    def require_own_folder(self) -> None:
        """Refuse a folder with another study in it, or with files of something else."""
        folder = self.plan.folder
        if not self._settings.exists():
            found = sorted(folder.iterdir()) if folder.is_dir() else []
            foreign = [path for path in found if path.name != "lock" and not path.name.startswith(".")]
            if foreign:
                raise UserError(f"{foreign[0]} is there, but no {self._settings.name} of a study: choose another --out")
            return
        try:
            stored = parse_json(read_file(self._settings, _LARGEST_SETTINGS), dict[str, dict[str, Any]])["settings"]
        except (BadData, KeyError, OSError) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise UserError(f"{self._settings} cannot be read ({reason}): choose another --out") from error
        require_same(folder, stored, self.plan.to_json(), remedy="another --out")

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Keep other processes out of the folder, which is made if need be."""
        with RunFolder(self.plan.folder).locked():
            self.require_own_folder()
            if not self._settings.exists():
                content = {"settings": self.plan.to_json(), "made_with": dataclasses.asdict(made_with())}
                write_atomically(self._settings, json.dumps(content, indent=2).encode() + b"\n")
            yield

    # The training. ----------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> Places:
        config, training = self.plan.config, self.plan.training
        return Places.drawn(config.states, config.iterations, training.steps, training.actors, config.seed)

    def train(self) -> int:
        """Train as far as the study needs it, and return the exit code."""
        if not self.iterations_left:
            return 0
        missing = self._kept.first_missing
        if missing < self._iterations_trained:
            raise UserError(
                f"{self.plan.folder} has no agent or no states of iteration {missing}, and its training has passed it: "
                "restore them from a backup, or move the folder away to start from scratch"
            )
        return train(self.plan.training, Keeper(self._kept, self._places, self.plan))

    # The rollouts. ----------------------------------------------------------------------------------------------------

    @cached_property
    def _measuring(self) -> Measuring:
        config = self.plan.config
        return Measuring(
            self._kept.load_states(self._places),
            config.rollouts,
            config.horizon,
            self.plan.training.gamma,
            config.seed,
            config.share_random_numbers,
        )

    def measure(self) -> Result:
        """Let those policies play that have not yet, and return what came of all."""
        missing = [policy for policy in self._policies if not self._is_measured(policy)]
        if missing:
            self._play(missing)
        return _result(self.plan, [self._measured(policy) for policy in self._policies])

    def _is_measured(self, policy: int) -> bool:
        path = self._values(policy)
        if not path.exists():
            return False
        try:
            self._measured(policy)
        except Damaged as problem:
            announce(f"{path} cannot be used ({problem}): it is measured again")
            return False
        return True

    def _measured(self, policy: int) -> Measured:
        config, agent = self.plan.config, self._kept.load_agent(policy)
        assert isinstance(agent.action_space, spaces.Discrete)
        shape = (config.states, int(agent.action_space.n), config.rollouts)
        return read_measured(self._values(policy), shape, self._measuring.fingerprint(agent, policy))

    def _play(self, policies: list[int]) -> None:
        """Let policies play, and write a file for each."""
        with simulator_of(self.plan, self._kept.load_agent(policies[0])) as simulator:
            each = self.plan.rollouts_of_a_policy(simulator.n_actions)
            before = len(self._policies) - len(policies)
            with WorkProgress(len(self._policies) * each, before * each, "rollouts") as progress:
                for place, policy in enumerate(policies, before + 1):
                    agent = simulator.model = self._kept.load_agent(policy)
                    news = f"policy {place} of {len(self._policies)}"
                    watch = partial(progress.advance, phase="playing", news=news)
                    measured = self._measuring.measure(simulator, policy, watch)
                    write_measured(self._values(policy), measured, self._measuring.fingerprint(agent, policy))


def _result(plan: StudyPlan, measured: list[Measured]) -> Result:
    changes = {
        "A": Changes.between(values.advantages for values in measured),
        "Q": Changes.between(values.q for values in measured),
    }
    share_cut = float(np.mean([values.cut.mean() for values in measured]))
    mean_length = float(np.mean([values.lengths.mean() for values in measured]))
    return Result(plan, changes, share_cut, mean_length)
