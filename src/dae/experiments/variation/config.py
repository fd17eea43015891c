"""The settings of the variation study: every field is an option of `dae variation`."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dae.envs import families, full_id, import_module_of, plain_id
from dae.errors import InvalidValue
from dae.experiments.config import THREADS, TrainConfig
from dae.experiments.sweep.planned import plan, read_settings
from dae.rules import HORIZON, SEVERAL, Rule, require, ruled
from dae.runs.settings import SEED
from dae.terminal.options import optional_words, read_options, read_or_help
from dae.text import plural

_COMMAND = "dae variation"
ALL = "all"
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "quick": {},
    "paper": {"iterations": 50, "states": 1024, "rollouts": 128, "share_random_numbers": False},
}
# Of the agent that is studied: the paper's settings, if need be with fewer actors.
_TRAINING: Mapping[str, Mapping[str, Any]] = {
    "quick": {"actors": 128, "frames": 500_000, "finishing": False},
    "paper": {},
}
_NOT_PART_OF_A_STUDY = ("threads", "dry_run", "out")


@dataclass(frozen=True)
class VariationConfig:
    """Measure how much advantages (A) and action values (Q) change between successive policies of a training.

    An agent is trained with DAE. Then rollouts of its policies, from states that it met on its way, tell what A and Q
    of every action really were. Run the same command again to continue a study that was stopped.

        dae variation Breakout
        dae variation all --dry-run
        dae variation Seaquest --preset paper
    """

    game: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")]
    """Game of MinAtar, such as Breakout; all for its five; or the id of an environment that can be restored."""
    preset: Literal["quick", "paper"] = "quick"
    """What the other options are by default, and the size of the training: minutes, or the paper's, days."""
    iterations: int = ruled(20, SEVERAL)
    """Iterations of the training: policies that are compared, each with the one before it."""
    states: int = ruled(64, SEVERAL)
    """States, drawn from all that the actors meet in these iterations."""
    rollouts: int = ruled(16, SEVERAL)
    """Rollouts for each policy, state and action."""
    horizon: int = ruled(512, HORIZON)
    """Steps after which a rollout is cut."""
    share_random_numbers: bool = True
    """Let rollouts of all policies have the same random numbers: less noise in changes. The paper's have their own."""
    settings: Annotated[tuple[str, ...], optional_words("NAME=VALUE ...")] = ()
    """Settings of the training, as of `dae train`, that differ from the paper's: actors=256 learning_rate=1e-4."""
    seed: int = ruled(0, SEED)
    """Seed of the training, of the states that are drawn, and of the rollouts."""
    threads: int = ruled(0, THREADS)
    """CPU threads of PyTorch; 0 leaves the choice to PyTorch."""
    dry_run: bool = False
    """Print how long it would take, without starting anything."""
    out: Path = field(default_factory=lambda: Path("variation"))
    """Folder for data, figures and summaries, in a folder for each game."""

    @cached_property
    def plans(self) -> "list[StudyPlan]":
        """The studies of the games."""
        return [StudyPlan(self, env) for env in _ids(self.game)]

    def require_consistent(self) -> None:
        """Refuse what cannot be a study."""
        for study in self.plans:
            study.require_consistent()


@dataclass(frozen=True)
class StudyPlan:
    """The study of one environment."""

    config: VariationConfig
    env: str

    @property
    def name(self) -> str:
        return _games().get(self.env) or plain_id(self.env).replace("/", "-")

    @property
    def folder(self) -> Path:
        return self.config.out / self.name

    @cached_property
    def training(self) -> TrainConfig:
        """The settings of the run whose agents are studied."""
        config = self.config
        own: dict[str, object] = {
            **_TRAINING[config.preset],
            "threads": config.threads,
            "pictures": False,
            "track": "none",
        }
        planned = plan(self.env, config.seed, own | read_settings("settings", config.settings))
        return dataclasses.replace(planned.config, resume=self.folder / "run")  # its folder, also while it is new

    @property
    def steps_per_iteration(self) -> int:
        return self.training.steps * self.training.actors

    @property
    def frames_per_iteration(self) -> int:
        return self.steps_per_iteration * self.training.family.frames_per_step

    def rollouts_of_a_policy(self, actions: int) -> int:
        return self.config.states * actions * self.config.rollouts

    def require_consistent(self) -> None:
        """Refuse more iterations than the training has, and more states than are met in them."""
        config = self.config
        longest = -(-self.training.frames // self.frames_per_iteration)
        rule = f"at most {longest}, the iterations of a training of {plural(self.training.frames, 'frame')}"
        require("iterations", config.iterations, Rule(rule, lambda n: n <= longest))
        met = config.iterations * self.steps_per_iteration
        rule = f"at most {met:,}, as many as actors meet in {plural(config.iterations, 'iteration')}"
        require("states", config.states, Rule(rule, lambda n: n <= met))

    def to_json(self) -> dict[str, Any]:
        """Return what decides the numbers of the study."""
        of_study = dataclasses.asdict(self.config) | {"game": self.env, "settings": list(self.config.settings)}
        return {name: value for name, value in of_study.items() if name not in _NOT_PART_OF_A_STUDY}


def parse(arguments: list[str]) -> VariationConfig:
    """Read the options of `dae variation`; what is not given comes from the preset."""
    return read_or_help(VariationConfig, _COMMAND, arguments, _resolve)


def _resolve(words: list[str]) -> VariationConfig:
    first = read_options(VariationConfig, _COMMAND, words)
    default = VariationConfig(first.game, first.preset, **PRESETS[first.preset])
    return read_options(VariationConfig, _COMMAND, words, default)


def _games() -> dict[str, str]:
    """Return the names of the games that the paper studies, by id, in its order."""
    return next(family.games for family in families() if family.name == "minatar")


def _ids(name: str) -> list[str]:
    """Return the environments that a word stands for; the name of a game alone is that of MinAtar."""
    if name.casefold() == ALL:
        return list(_games())
    if not name:
        raise InvalidValue(f"game is {name!r}: it must be the name of a game, an environment id, or {ALL}")
    of_minatar = next(family for family in families() if family.name == "minatar").ids_named(name)
    import_module_of(name)
    return of_minatar or [full_id(name)]
