"""The settings of a sweep, and the runs that they stand for."""

from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dae.envs import families, family_of
from dae.errors import UserError, nearest
from dae.experiments.config import TrainConfig, parse
from dae.paper import ABLATION
from dae.rules import COUNT, EACH_ONCE, NOT_NEGATIVE, check_fields, optional, ruled
from dae.runs import RunFolder
from dae.terminal.options import one_of, option_name


@dataclass(frozen=True)
class Grid:
    """What a sweep runs over."""

    envs: tuple[str, ...]
    advantages: tuple[str, ...] = ("dae", "gae")
    networks: tuple[str, ...] = ("baseline",)
    seeds: int = 1
    preset: str = "paper"
    settings: tuple[str, ...] = ()


def suites() -> dict[str, Grid]:
    """Return the grids that have a name: the paper's experiments, with its numbers of seeds, and a small one."""
    papers = {family.name: (family, family.protocol) for family in families() if family.protocol}
    games, seeds = papers["minatar"][1].games, papers["minatar"][1].seeds
    return {
        **{name: Grid(p.games, networks=family.network_names, seeds=p.seeds) for name, (family, p) in papers.items()},
        "ablation": Grid(games, advantages=ABLATION, seeds=seeds),
        # Small enough to see in minutes that everything works.
        "smoke": Grid(games[:2], seeds=2, preset="quick", settings=("frames=20K", "actors=16")),
    }


@dataclass(frozen=True)
class SweepConfig:
    """Train a grid of runs. Run the same command again to continue: finished runs are skipped, others go on."""

    suite: Annotated[str, tyro.conf.Positional, one_of(suites())] = ""
    """The paper's experiments, by family, its ablation, or a test of a few minutes (smoke); or use --envs."""
    envs: tuple[str, ...] = ruled((), EACH_ONCE)
    """Environments, in place of the suite's."""
    advantages: tuple[str, ...] = ruled((), EACH_ONCE)
    """Estimators, in place of the suite's (without a suite: dae gae)."""
    networks: tuple[str, ...] = ruled((), EACH_ONCE)
    """Networks, in place of the suite's (without a suite: baseline)."""
    seeds: int | None = ruled(None, optional(COUNT, "for the suite's"))
    """Seeds of each combination, in place of the suite's (without a suite: 1)."""
    first_seed: int = ruled(0, NOT_NEGATIVE)
    """The first seed; the others follow it."""
    preset: str | None = None
    """Preset of the runs, in place of the suite's (without a suite: paper)."""
    settings: tuple[str, ...] = ()
    """Settings of all runs, as of `dae train`: frames=500K actors=128."""
    launcher: Literal["local", "ray"] = "local"
    """What trains the runs: processes on this machine, or a Ray cluster (all nodes must share the run folders)."""
    jobs: int = ruled(0, NOT_NEGATIVE)
    """Runs at the same time; 0 for as many as the cores allow."""
    cpus_per_run: int = ruled(1, COUNT)
    """Cores, and threads, of each run."""
    gpus_per_run: float = ruled(0.0, NOT_NEGATIVE)
    """GPUs of each run, with Ray; a fraction lets runs share one."""
    ray_address: str | None = None
    """Address of a Ray cluster, or auto for one that runs on this machine; without it a local one is started."""
    retries: int = ruled(2, NOT_NEGATIVE)
    """How often a run that died (was killed, ran out of memory) is started again without making progress."""
    dry_run: bool = False
    """Print what would run and how long it would take, without starting anything."""
    out: Path = field(default_factory=lambda: Path("runs"))
    """Folder that runs are kept in."""

    @property
    def grid(self) -> Grid:
        """What the suite and the options together stand for."""
        base = suites()[self.suite] if self.suite else Grid(())
        return Grid(
            self.envs or base.envs,
            self.advantages or base.advantages,
            self.networks or base.networks,
            base.seeds if self.seeds is None else self.seeds,
            self.preset or base.preset,
            base.settings + self.settings,
        )

    def require_consistent(self) -> None:
        """Refuse what cannot be a sweep."""
        known = suites()
        if self.suite and self.suite not in known:
            hint = nearest(self.suite, known)
            raise UserError(
                f"suite is {self.suite!r}: it must be one of {', '.join(known)}, or left out for --envs{hint}"
            )
        if not self.grid.envs:
            raise UserError(f"there is nothing to run: name a suite ({', '.join(known)}) or --envs")
        if self.gpus_per_run and self.launcher != "ray":
            raise UserError(f"gpus_per_run is {self.gpus_per_run:g}: only --launcher ray can assign GPUs")
        for text in self.settings:
            name, sign, _ = text.partition("=")
            if not sign or name in _THE_SWEEPS_OWN:
                raise UserError(f"settings has {text!r}: it must be NAME=VALUE, with NAME not set by the sweep")


_THE_SWEEPS_OWN = ("env", "advantage", "network", "preset", "seed", "out", "config", "resume", "threads")


@dataclass(frozen=True)
class PlannedRun:
    """A run of the sweep: the arguments of its `dae train`, and the settings they give."""

    words: tuple[str, ...]
    config: TrainConfig

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.config.folder)


def planned_runs(config: SweepConfig) -> list[PlannedRun]:
    """Return the runs of a sweep, seed by seed, so that early results cover all combinations.

    Settings that no run can have are refused here.
    """
    grid = config.grid
    parsed: dict[tuple[str, str, str], TrainConfig] = {}
    planned = []
    for seed, env, network, advantage in product(
        range(config.first_seed, config.first_seed + grid.seeds), grid.envs, grid.networks, grid.advantages
    ):
        words = _words(config, network, advantage)
        # Presets look at an environment's family only: reading the same words for each of thousands would take long.
        kind = family_of(env).name, network, advantage
        if kind not in parsed:
            parsed[kind] = parse([env, *words])
        run = PlannedRun((env, *words, "--seed", str(seed)), replace(parsed[kind], env=env, seed=seed))
        check_fields(run.config)
        run.config.require_consistent()
        planned.append(run)
    return planned


def _words(config: SweepConfig, network: str, advantage: str) -> list[str]:
    """Return the options of `dae train`, except the seed."""
    named: dict[str, object] = {
        "advantage": advantage,
        "network": network,
        "preset": config.grid.preset,
        "threads": config.cpus_per_run,
        "pictures": False,
        "out": config.out,
    }
    named |= dict(text.split("=", 1) for text in config.grid.settings)
    return [f"{option_name(name)}={value}" for name, value in named.items()]
