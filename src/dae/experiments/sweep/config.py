"""The settings of a sweep, and the runs that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from dae.catalog import estimator_names
from dae.envs import SB3_PRESET, families, full_id, import_module_of, network_names, preset_names
from dae.errors import UserError, nearest
from dae.experiments.config import TrainConfig
from dae.experiments.sweep.grid import combinations, tag_of
from dae.experiments.sweep.launching import Launching
from dae.experiments.sweep.planned import PlannedRun, plan, read_settings
from dae.experiments.sweep.seeds import SEEDS, SEEDS_WORDS, Seeds
from dae.paper import ABLATION, REFERENCE
from dae.rules import EACH_ONCE, NOT_NEGATIVE, optional, ruled
from dae.terminal.options import choice, one_of, optional_words

_NETWORKS, _PRESETS = network_names(), preset_names()


@dataclass(frozen=True)
class Grid:
    """What a sweep runs over."""

    envs: tuple[str, ...]
    advantages: tuple[str, ...] = ("dae", "gae")
    networks: tuple[str, ...] = ("baseline",)
    seeds: Seeds = 1
    preset: str = "paper"
    settings: tuple[str, ...] = ()
    of_env: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # settings of single environments
    folder: str = ""  # within the folder that runs are kept in
    tag: str = ""  # of the runs


class Suite(NamedTuple):
    """A sweep that has a name: its grids, and what to make of the finished runs."""

    grids: tuple[Grid, ...]
    summary: str = ""  # "module:function" of the folder and the runs in it
    compares: tuple[str, ...] = ()  # the settings that tell its grids apart, which therefore cannot be replaced


# Small problems, and the frames for 1 and for 8 environments: enough for Stable-Baselines3's defaults to learn most.
CLASSIC: Mapping[str, Mapping[int, str]] = {
    "CartPole-v1": {1: "50K", 8: "100K"},
    "Acrobot-v1": {1: "60K", 8: "100K"},
    "MountainCar-v0": {1: "30K", 8: "60K"},
    "FrozenLake-v1": {1: "30K", 8: "60K"},
    "LunarLander-v3": {1: "100K", 8: "150K"},
    "MinAtar/Breakout-v1": {8: "50K"},
    "MinAtar/Asterix-v1": {8: "50K"},
}


# DAE as in the paper, with the paper's settings of the critic; rows are as long as a minibatch.
_OF_THE_PAPER = ("correction=0", "row_length=None", "critic_coef=1.5", "max_grad_norm=None")
_COMPARED_IN_CLASSIC = (
    *("advantages", "networks", "preset", "actors", "implementation"),
    *(setting.partition("=")[0] for setting in _OF_THE_PAPER),
)


def _classic() -> tuple[Grid, ...]:
    """Return what compares the defaults of `dae.PPO` with Stable-Baselines3's own, with 1 and with 8 environments."""
    grids = []
    for actors in (1, 8):
        frames = {env: (f"frames={sizes[actors]}",) for env, sizes in CLASSIC.items() if actors in sizes}
        plain = Grid(tuple(frames), preset=SB3_PRESET, seeds=3, of_env=frames, settings=(f"actors={actors}",))
        for name, advantages, setting in (
            ("default", ("dae", "gae"), ()),
            ("uncorrected", ("dae",), _OF_THE_PAPER),
            ("sb3", ("gae",), ("implementation=sb3",)),
        ):
            folder = f"{name}-{actors}"
            grids.append(replace(plain, folder=folder, advantages=advantages, settings=plain.settings + setting))
    return tuple(grids)


# PPO's settings for Atari in rl-zoo, under our names; learning rate and clip range fall to 0 there too.
_ZOO = (
    *("actors=8", "steps=128", "batch_size=256", "epochs=4", "learning_rate=2.5e-4", "clip_range=0.1", "anneal=yes"),
    *("gamma=0.99", "gae_lambda=0.95", "ent_coef=0.01", "critic_coef=0.5", "max_grad_norm=0.5"),
)


def _laptop(games: tuple[str, ...]) -> tuple[Grid, ...]:
    """Return what tells how long it takes to play well: short runs, the paper's, and Stable-Baselines3's own PPO."""
    return (
        Grid(games, preset="quick", seeds=2, folder="quick"),
        Grid(games, ("gae",), preset="quick", seeds=2, settings=("implementation=sb3", *_ZOO), folder="sb3"),
        Grid(games, advantages=("dae",), seeds=1, folder="paper"),
    )


def suites() -> dict[str, Suite]:
    """Return the sweeps that have a name: the paper's experiments, with its numbers of seeds, and smaller ones."""
    papers = {family.name: (family, family.protocol) for family in families() if family.protocol}
    games, seeds = papers["minatar"][1].games, papers["minatar"][1].seeds
    return {
        **{
            name: Suite((Grid(protocol.games, networks=family.network_names, seeds=protocol.seeds),))
            for name, (family, protocol) in papers.items()
        },
        "ablation": Suite((Grid(games, advantages=(*ABLATION, REFERENCE), seeds=seeds),)),
        "classic": Suite(_classic(), "dae.experiments.classic:summarise", _COMPARED_IN_CLASSIC),
        "laptop": Suite(
            _laptop(games),
            "dae.experiments.laptop:summarise",
            ("advantages", "networks", "preset", "implementation", *(text.partition("=")[0] for text in _ZOO)),
        ),
        # Small enough to see in minutes that everything works.
        "smoke": Suite((Grid(games[:2], seeds=2, preset="quick", settings=("frames=20K", "actors=16")),)),
    }


@dataclass(frozen=True)
class _Swept:
    """What is trained."""

    suite: Annotated[str, tyro.conf.Positional, one_of(suites()), optional_words(choice(suites()))] = ""
    """The paper's experiments; its ablation; small problems (classic); time to a score (laptop); a test (smoke)."""
    envs: Annotated[tuple[str, ...], optional_words("ENV ...")] = ruled((), EACH_ONCE)
    """Environments, in place of the suite's."""
    advantages: Annotated[
        tuple[Annotated[str, one_of(estimator_names())], ...], optional_words(f"{choice(estimator_names())} ...")
    ] = ruled((), EACH_ONCE)
    """Estimators, in place of the suite's (without a suite: dae gae)."""
    networks: Annotated[tuple[Annotated[str, one_of(_NETWORKS)], ...], optional_words(f"{choice(_NETWORKS)} ...")] = (
        ruled((), EACH_ONCE)
    )
    """Networks, in place of the suite's (without a suite: baseline)."""
    seeds: Annotated[Seeds | None, SEEDS_WORDS, optional_words("SEEDS")] = ruled(
        None, optional(SEEDS, "for the suite's")
    )
    """Seeds, in place of the suite's (without a suite: 1): 5 for five, 0 3 4 for these, 10-19 for a range."""
    first_seed: int = ruled(0, NOT_NEGATIVE)
    """The first seed, if --seeds says how many."""
    preset: Annotated[str | None, one_of(_PRESETS), optional_words(choice(_PRESETS))] = None
    """Preset of the runs, in place of the suite's (without a suite: paper)."""
    settings: Annotated[tuple[str, ...], optional_words("NAME=VALUE ...")] = ()
    """Settings of all runs, as of `dae train`: frames=500K actors=128."""
    grid: Annotated[tuple[str, ...], optional_words("NAME=A,B,C ...")] = ()
    """Settings with several values, in all combinations: learning_rate=1e-4,3e-4 epochs=4,6."""


@dataclass(frozen=True)
class SweepConfig(Launching, _Swept):
    """Train a grid of runs. Run the same command again to continue: finished runs are skipped, others go on.

    dae sweep minatar --seeds 5 --networks baseline --dry-run
    dae sweep --envs CartPole-v1 Acrobot-v1 --seeds 10 --settings frames=200K
    dae sweep --envs CartPole-v1 --grid learning_rate=1e-4,3e-4 epochs=4,6
    """

    dry_run: bool = False
    """Print what would run and how long it would take, without starting anything."""
    out: Path = field(default_factory=lambda: Path("runs"))
    """Folder that runs are kept in."""

    @property
    def grids(self) -> tuple[Grid, ...]:
        """What the suite and the options together stand for."""
        return tuple(
            Grid(
                tuple(full_id(env) for env in self.envs) or base.envs,
                self.advantages or base.advantages,
                self.networks or base.networks,
                base.seeds if self.seeds is None else self.seeds,
                self.preset or base.preset,
                (*base.settings, *self.settings, *(f"{name}={value}" for name, value in values.items())),
                base.of_env,
                base.folder,
                tag_of(values),
            )
            for base in (suites()[self.suite].grids if self.suite else (Grid(()),))
            for values in combinations(self.grid)
        )

    def require_consistent(self) -> None:
        """Refuse what cannot be a sweep."""
        known = suites()
        if self.suite and self.suite not in known:
            hint = nearest(self.suite, known)
            raise UserError(
                f"suite is {self.suite!r}: it must be one of {', '.join(known)}, or left out for --envs{hint}"
            )
        if not all(grid.envs for grid in self.grids):
            raise UserError(f"there is nothing to run: name a suite ({', '.join(known)}) or --envs")
        fixed = known[self.suite].compares if self.suite else ()
        given = [name for name in ("advantages", "networks", "preset") if getattr(self, name)]
        settings = read_settings("settings", self.settings) | read_settings("grid", self.grid)
        for name in (*given, *settings):
            if name in fixed:
                raise UserError(f"{name} is what the suite {self.suite!r} compares: it cannot be replaced; use --envs")
        if self.grid and fixed:
            raise UserError(
                f"grid is {' '.join(self.grid)}: the suite {self.suite!r} compares other things; use --envs"
            )
        self.require_launchable()
        if self.first_seed and isinstance(self.seeds, tuple):
            raise UserError(f"first_seed is {self.first_seed}: it has no meaning if --seeds names the seeds")
        if len({grid.tag for grid in self.grids}) < len(combinations(self.grid)):
            raise UserError(f"grid is {' '.join(self.grid)}: its values must differ in letters, digits and . _ = , + -")

    def seeds_of(self, grid: Grid) -> Sequence[int]:
        """Return the seeds of a grid: those that are named, or as many as it has from the first one on."""
        if isinstance(grid.seeds, tuple):
            return grid.seeds
        return range(self.first_seed, self.first_seed + grid.seeds)


def planned_runs(config: SweepConfig) -> list[PlannedRun]:
    """Return the runs of a sweep, seed by seed, so that early results cover all combinations.

    Settings that no run can have are refused here.
    """
    for env in {env for grid in config.grids for env in grid.envs}:
        import_module_of(env)  # it may register a family, and with it presets
    known: dict[tuple[object, ...], TrainConfig] = {}
    planned = []
    most = max(len(config.seeds_of(grid)) for grid in config.grids)
    for place, grid in product(range(most), config.grids):
        seeds = config.seeds_of(grid)
        if place < len(seeds):
            for env, network, advantage in product(grid.envs, grid.networks, grid.advantages):
                planned.append(plan(env, seeds[place], _settings(config, grid, env, network, advantage), known))
    return planned


def _settings(config: SweepConfig, grid: Grid, env: str, network: str, advantage: str) -> dict[str, object]:
    """Return the options of `dae train`, except the seed."""
    settings = read_settings("settings", (*grid.of_env.get(env, ()), *grid.settings))
    tag = ",".join(filter(None, (settings.pop("tag", ""), grid.tag)))
    return {
        "advantage": advantage,
        "network": network,
        "preset": grid.preset,
        "threads": config.cpus_per_run,
        "pictures": False,
        "out": config.out / grid.folder,
        **settings,
        **({"tag": tag} if tag else {}),
    }
