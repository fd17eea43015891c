"""The settings of `dae tune`, and the runs of a trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dae.catalog import estimator_names
from dae.envs import network_names, plain_id, preset_names
from dae.errors import UserError
from dae.experiments.sweep.launching import Launching
from dae.experiments.sweep.planned import PlannedRun, plan, read_settings
from dae.experiments.tune.space import DEFAULT, Space, Value, parse_space
from dae.rules import COUNT, NOT_NEGATIVE, ruled
from dae.runs.settings import ENV_ID, ENV_WORD, SEED, TAG, tagged
from dae.terminal.options import one_of, optional_words


@dataclass(frozen=True)
class _Searched:
    """What is searched, and how."""

    env: Annotated[str, ENV_WORD, tyro.conf.Positional, optional_words("ENV")] = ruled("", ENV_ID)
    """Environment, as of `dae train`."""
    advantage: Annotated[str, one_of(estimator_names())] = "dae"
    """How advantages are estimated."""
    network: Annotated[str, one_of(network_names())] = "baseline"
    """Size of the network."""
    preset: Annotated[str, one_of(preset_names())] = "quick"
    """What the other settings of the runs are."""
    settings: Annotated[tuple[str, ...], optional_words("NAME=VALUE ...")] = ()
    """Settings of all runs, as of `dae train`: frames=200K actors=16."""
    space: tuple[str, ...] = DEFAULT
    """What is searched: NAME=A,B,C or NAME=LOW..HIGH or NAME=log:LOW..HIGH, with settings of `dae train`."""
    trials: int = ruled(20, COUNT)
    """Trials in all; run the command again with more to go on."""
    seeds: int = ruled(1, COUNT)
    """Runs of each trial, with different seeds; their mean score counts."""
    objective: Literal["last", "overall"] = "last"
    """Score of a run: the mean of its last 100 episodes, or of all of them (which rewards learning fast)."""
    sampler: Literal["tpe", "random"] = "tpe"
    """How values are chosen: by what was good so far (TPE), or at random."""
    pruner: Literal["median", "halving", "none"] = "median"
    """Which trials are given up: those below the median at the same frames, by successive halving, or none."""
    startup_trials: int = ruled(5, NOT_NEGATIVE)
    """Trials at random, and without giving up any, at the beginning."""
    seed: int = ruled(0, SEED)
    """Seed of the search, and the first seed of the runs."""
    tag: Annotated[str, optional_words("TAG")] = ruled("", TAG)
    """A word in the name of the folder, to keep searches apart."""


@dataclass(frozen=True)
class TuneConfig(Launching, _Searched):
    """Search for good hyperparameters with Optuna. Run the same command again to continue.

    dae tune CartPole-v1 --trials 30 --settings frames=50K
    dae tune CartPole-v1 --space learning_rate=log:1e-4..1e-2 epochs=2..8
    """

    out: Path = field(default_factory=lambda: Path("tune"))
    """Folder that searches are kept in."""

    @property
    def folder(self) -> Path:
        name = tagged(f"{self.advantage}-{self.network}", self.tag)
        return self.out / plain_id(self.env).replace("/", "-") / name

    @property
    def journal(self) -> Path:
        return self.folder / "study.journal"

    @property
    def parsed_space(self) -> Space:
        return parse_space(self.space)

    @property
    def fixed(self) -> dict[str, str]:
        """The settings that all runs have."""
        return read_settings("settings", self.settings)

    def searched(self) -> dict[str, Any]:
        """Return, as data, what may not change while a search goes on."""
        same = ("env", "advantage", "network", "preset", "seeds", "objective", "seed")
        named = {name: getattr(self, name) for name in same}
        return {**named, "settings": self.fixed, "space": sorted(self.space)}

    def require_consistent(self) -> None:
        """Refuse what cannot be a search."""
        read_settings("space", self.space)
        for name in self.parsed_space:
            if name in self.fixed:
                raise UserError(f"{name} is in settings and in space: it must be in one of them")
        self.runs_of(0, {})  # what is wrong with every run is wrong now

    def runs_of(self, trial: int, values: Mapping[str, Value]) -> list[PlannedRun]:
        """Return the runs of a trial; values that do not go together are refused."""
        named: dict[str, object] = {
            "advantage": self.advantage,
            "network": self.network,
            "preset": self.preset,
            "threads": self.cpus_per_run,
            "pictures": False,
            "out": self.folder / f"trial-{trial:04d}",
            **self.fixed,
            **values,
        }
        return [plan(self.env, seed, named) for seed in range(self.seed, self.seed + self.seeds)]
