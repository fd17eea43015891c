"""The advantage estimators by name, as commands and reports know them: everything but the code that needs PyTorch.

`dae.agent.estimators` holds the classes; each has its description from here, or brings its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dae.errors import InvalidValue, nearest
from dae.hyperparameters import SB3_DEFAULTS, as_settings

Batching = Literal["steps", "trajectories"]


@dataclass(frozen=True)
class Colour:
    """How a method is drawn on white and on black."""

    light: str
    dark: str


@dataclass(frozen=True)
class EstimatorInfo:
    """What an estimator declares about itself; labels, choices, checks, defaults and colours follow from it."""

    name: str  # on the command line, in files and in `dae.PPO(advantage=...)`
    label: str  # in tables and figures
    colour: Colour | None = None  # without one, the next spare colour
    # Arguments of `dae.PPO` that differ: from DAE's in the paper, and from Stable-Baselines3's where none are given.
    paper: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    action_spaces: tuple[str, ...] = ("Discrete",)  # the classes of gymnasium that it works for, by name
    batching: Batching = "trajectories"  # what its minibatches are made of
    takes_correction: bool = False
    models_all_actions: bool = True  # `model.advantages` works
    trains_agents: bool = True  # False: only in the chain experiment
    compared_with: tuple[str, ...] = ("gae", "dae")  # reports compare it with these

    @property
    def ignores(self) -> list[str]:
        """The options of PPO that have no meaning for it."""
        of_rows = ["row_length", "minibatches", "drop_last"] if self.batching == "steps" else []
        return of_rows if self.takes_correction else ["correction", *of_rows]

    def accepts(self, action_space: object) -> bool:
        """Say whether the estimator works for an action space of gymnasium."""
        return any(kind.__name__ in self.action_spaces for kind in type(action_space).__mro__)


_KNOWN: dict[str, EstimatorInfo] = {}


def add(info: EstimatorInfo) -> EstimatorInfo:
    """Register an estimator; tables and figures keep the order of registration, and a name has one description."""
    as_settings({**info.paper, **info.defaults})  # refuses what is not an argument of PPO
    if _KNOWN.setdefault(info.name, info) != info:
        raise InvalidValue(f"the name {info.name!r} is already used by another estimator, {_KNOWN[info.name].label}")
    return info


ENUMERABLE = ("Discrete", "MultiDiscrete", "MultiBinary")  # actions whose probabilities can be summed
# Colours that people with any colour vision can tell apart (Okabe and Ito), lighter ones on black.
GAE = add(
    EstimatorInfo(
        "gae",
        "GAE",
        Colour("#d55e00", "#f28e4b"),
        paper={"n_epochs": 4, "vf_coef": 0.5, "max_grad_norm": 0.5, "gae_lambda": 0.95},
        action_spaces=(*ENUMERABLE, "Box"),
        batching="steps",
        models_all_actions=False,
        compared_with=(),
    )
)
DAE = add(
    EstimatorInfo(
        "dae",
        "DAE",
        Colour("#0072b2", "#56b4e9"),
        # What is corrected looks ahead by itself: rows can be single steps, and shuffled steps were measured best.
        defaults={"correction": 1.0, "row_length": 1},
        action_spaces=ENUMERABLE,
        takes_correction=True,
        compared_with=("gae", "indirect", "duel"),
    )
)
# With rows of one step it would be DAE.
DUEL = add(
    replace(
        DAE,
        name="duel",
        label="Duel",
        colour=Colour("#009e73", "#2fcf9f"),
        defaults={"correction": 1.0},
        compared_with=(),
    )
)
INDIRECT = add(EstimatorInfo("indirect", "Indirect", Colour("#cc79a7", "#e6a1c8"), compared_with=()))
MONTE_CARLO = add(EstimatorInfo("monte-carlo", "Monte-Carlo DAE", Colour("#e69f00", "#f0b93c"), trains_agents=False))
_SPARE = (
    Colour("#7a5195", "#c3a0dc"),
    Colour("#8c6d31", "#d9bd7c"),
    Colour("#3b6e22", "#9ccf7f"),
    Colour("#5c6670", "#b4bec7"),
    Colour("#b0004b", "#ff86b4"),
)
_ASSIGNED: dict[str, Colour] = {}


def estimator_names() -> list[str]:
    """Return the estimators that an agent can be trained with."""
    return [info.name for info in _KNOWN.values() if info.trains_agents]


def describe(name: str) -> EstimatorInfo:
    """Return an estimator's description; one that this program does not know has its name as its label."""
    return _KNOWN.get(name) or EstimatorInfo(name, name)


def require_estimator(name: object) -> EstimatorInfo:
    """Return the description of an estimator that an agent can be trained with, or refuse the name."""
    names = estimator_names()
    if not isinstance(name, str) or name not in names:
        hint = nearest(name, names) if isinstance(name, str) else ""
        raise InvalidValue(f"advantage={name!r} is not known; choose one of {', '.join(names)}{hint}")
    return _KNOWN[name]


def colour_of(name: str) -> Colour:
    """Return an estimator's colours; one that declares none gets the next spare ones."""
    return describe(name).colour or _ASSIGNED.setdefault(name, _SPARE[len(_ASSIGNED) % len(_SPARE)])


def rank_of(name: str) -> tuple[int, str]:
    """Return a key that sorts estimators as they are shown: those that are known first."""
    known = list(_KNOWN)
    return (known.index(name) if name in known else len(known), name)


def default_settings(info: EstimatorInfo) -> dict[str, Any]:
    """Return the settings that `dae.PPO` has by default: Stable-Baselines3's, and the estimator's own."""
    return SB3_DEFAULTS | as_settings(info.defaults)


def set_by_the_paper() -> set[str]:
    """Return the arguments of PPO that the paper sets differently for different estimators."""
    return {argument for info in _KNOWN.values() for argument in info.paper}
