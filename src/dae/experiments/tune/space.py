"""What is searched: settings of a run, each with the values that it may have."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dae.errors import InvalidValue

if TYPE_CHECKING:
    from optuna.trial import Trial

Value = str | int | float


@dataclass(frozen=True)
class Choice:
    """One of some values, as they stand on a command line."""

    values: tuple[str, ...]

    def suggest(self, trial: "Trial", name: str) -> Value:
        return str(trial.suggest_categorical(name, list(self.values)))


@dataclass(frozen=True)
class Range:
    """A number between two others, both included; with `log`, small ones are as likely as large ones."""

    low: float
    high: float
    log: bool
    whole: bool

    def suggest(self, trial: "Trial", name: str) -> Value:
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


Space = dict[str, Choice | Range]

# What matters most for PPO, within the bounds that people use.
DEFAULT = (
    "learning_rate=log:1e-5..1e-2",
    "epochs=2..12",
    "batch_size=64,128,256,512",
    "gamma=0.9,0.95,0.98,0.99,0.995,0.999",
    "ent_coef=log:1e-5..1e-1",
    "clip_range=0.1,0.2,0.3",
)


def parse_space(texts: tuple[str, ...]) -> Space:
    """Read NAME=VALUES, where the values are a,b,c or LOW..HIGH or log:LOW..HIGH.

    >>> parse_space(("epochs=2..8", "gamma=0.9,0.99"))["epochs"]
    Range(low=2.0, high=8.0, log=False, whole=True)
    """
    space: Space = {}
    for text in texts:
        name, sign, values = text.partition("=")
        name = name.replace("-", "_")
        if not sign or not values:
            raise InvalidValue(f"space has {text!r}: it must be NAME=A,B,C or NAME=LOW..HIGH or NAME=log:LOW..HIGH")
        if name in space:
            raise InvalidValue(f"space has {name!r} twice")
        space[name] = _parse_range(text, values) if ".." in values else Choice(_parse_choices(text, values))
    return space


def _parse_choices(text: str, values: str) -> tuple[str, ...]:
    choices = tuple(values.split(","))
    if not all(choices) or len(set(choices)) < len(choices):
        raise InvalidValue(f"space has {text!r}: its values must be different, and none empty")
    return choices


def _parse_range(text: str, values: str) -> Range:
    log = values.startswith("log:")
    ends = values.removeprefix("log:").split("..")
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high) or (log and low <= 0):
        raise InvalidValue(
            f"space has {text!r}: a range is LOW..HIGH with numbers LOW < HIGH, above 0 for log:LOW..HIGH"
        )
    return Range(low, high, log, whole=all(end.lstrip("+-").isdigit() for end in ends))


def suggest(space: Space, trial: "Trial") -> dict[str, Value]:
    """Let a trial choose a value for each setting."""
    return {name: values.suggest(trial, name) for name, values in space.items()}
