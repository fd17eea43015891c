"""PPO's settings: each field is an argument of `dae.PPO`, an option of `dae train` and a part of a run's settings.

The defaults are the paper's, for DAE, beside Stable-Baselines3's; `dae.catalog` has what estimators change in either.
A new option of PPO is a field of `PPOOptions` and the code that uses it: argument, command line, check, file and report
follow from the field.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dae.errors import InvalidValue, nearest
from dae.rules import COUNT, FRACTION, NOT_NEGATIVE, POSITIVE, SWITCH, Rule, one_of, optional, require, ruled


def setting(
    default: Any, rule: Rule, argument: str = "", *, scheduled: bool = False, sb3: Any = dataclasses.MISSING
) -> Any:
    """Describe a field: its rule, its name in `dae.PPO` if that differs, whether it can be a schedule there.

    `sb3` is Stable-Baselines3's default; without it the default is the same everywhere.
    """
    sb3 = default if sb3 is dataclasses.MISSING else sb3
    return ruled(default, rule, argument=argument, scheduled=scheduled, sb3=sb3)


@dataclass(frozen=True)
class SB3Settings:
    """What `dae.PPO` has in common with Stable-Baselines3's PPO."""

    steps: int = setting(128, COUNT, "n_steps", sb3=2048)
    """Steps of each actor between two updates."""
    batch_size: int = setting(256, COUNT, sb3=64)
    """Steps in a minibatch."""
    epochs: int = setting(6, COUNT, "n_epochs", sb3=10)
    """Passes over the steps of an update."""
    learning_rate: float = setting(2.5e-4, NOT_NEGATIVE, scheduled=True, sb3=3e-4)
    """Step size of Adam."""
    clip_range: float = setting(0.1, POSITIVE, scheduled=True, sb3=0.2)
    """How far PPO lets the policy move in an update."""
    anneal: bool = setting(True, SWITCH, sb3=False)
    """Let learning rate and clip range fall linearly to 0 over the run."""
    gamma: float = setting(0.99, FRACTION)
    """Discount factor."""
    gae_lambda: float = setting(0.95, FRACTION)
    """GAE's λ."""
    ent_coef: float = setting(0.01, NOT_NEGATIVE, sb3=0.0)
    """Weight of the entropy bonus."""
    critic_coef: float = setting(1.5, NOT_NEGATIVE, "vf_coef", sb3=0.5)
    """Weight of the critic's loss."""
    max_grad_norm: float | None = setting(None, optional(POSITIVE, "for no clipping"), sb3=0.5)
    """Largest norm of the gradient; None for no clipping."""
    normalize: bool = setting(True, SWITCH, "normalize_advantage")
    """Normalise advantages in each minibatch."""


@dataclass(frozen=True)
class PPOOptions:
    """What `dae.PPO` takes beyond the arguments of Stable-Baselines3's."""

    correction: float = setting(0.0, FRACTION, scheduled=True)
    """Correct DAE's advantages by the rewards that followed: from 0, the paper's DAE, to 1, GAE's expectation."""
    row_length: int | None = setting(None, optional(COUNT, "for whole rows of all steps between two updates"))
    """How many steps a trajectory in a minibatch of DAE, Duel and Indirect has; it bootstraps where it is cut."""
    minibatches: Literal["rows", "segments"] = setting("rows", one_of("rows", "segments"))
    """What DAE's, Duel's and Indirect's are made of: rows of equal length, or whole segments, as the authors' are."""
    drop_last: bool = setting(False, SWITCH)
    """Drop the segments that do not fill a minibatch at the end of an epoch, as the authors do."""
    kl_coef: float | None = setting(None, optional(NOT_NEGATIVE, "to clip instead"))
    """Penalise KL(μ‖π) with this weight in place of clipping."""
    bootstrap_truncations: bool = setting(True, SWITCH)
    """Bootstrap from the value of the last state when a time limit ends an episode; the authors use 0."""
    torch_compile: bool = setting(False, SWITCH)
    """Compile the network's part of the update."""


@dataclass(frozen=True)
class Hyperparameters(PPOOptions, SB3Settings):
    """All settings of PPO."""

    def arguments(self, schedule: Callable[[float], Any]) -> dict[str, Any]:
        """Return the arguments of `dae.PPO`; `schedule` makes one that falls from a value to 0."""
        values = {argument_of(field): getattr(self, field.name) for field in dataclasses.fields(Hyperparameters)}
        if values.pop("anneal"):
            values |= {name: schedule(values[name]) for name in ANNEALED}
        return values


ANNEALED = ("learning_rate", "clip_range")
SB3_DEFAULTS = {field.name: field.metadata["sb3"] for field in dataclasses.fields(Hyperparameters)}


def argument_of(field: "dataclasses.Field[Any]") -> str:
    """Return what `dae.PPO` calls a setting."""
    return field.metadata["argument"] or field.name


def as_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of PPO, under Stable-Baselines3's names, as the settings of a run.

    >>> as_settings({"n_epochs": 4, "gae_lambda": 0.95})
    {'epochs': 4, 'gae_lambda': 0.95}
    """
    names = {argument_of(field): field.name for field in dataclasses.fields(Hyperparameters)}
    for argument in arguments:
        if argument not in names:
            raise InvalidValue(f"{argument!r} is not a setting of PPO{nearest(argument, names)}")
    return {names[argument]: value for argument, value in arguments.items()}


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of PPO that cannot work."""
    for field in dataclasses.fields(Hyperparameters):
        name, rule = argument_of(field), field.metadata["rule"]
        if name in arguments:
            require(name, arguments[name], or_schedule(rule) if field.metadata["scheduled"] else rule)


def or_schedule(rule: Rule) -> Rule:
    return Rule(f"{rule.text} or a schedule", lambda x: callable(x) or rule.holds(x))
