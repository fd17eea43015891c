"""Rules for values: a field of a dataclass carries its rule, and a value that breaks it is refused in one line."""

import dataclasses
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

from dae.errors import InvalidValue


class Rule(NamedTuple):
    """What a value must be."""

    text: str
    holds: Callable[[Any], bool]


def is_number(x: Any) -> bool:
    """Say whether a value is a finite number.

    >>> is_number(3), is_number(10**400), is_number(True)
    (True, False, False)
    """
    try:
        return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)
    except OverflowError:  # an integer that no float holds
        return False


def optional(rule: Rule, meaning: str) -> Rule:
    """Return a rule that also allows None, which means something."""
    return Rule(f"{rule.text}, or None {meaning}", lambda x: x is None or rule.holds(x))


def one_of(*choices: str) -> Rule:
    """Return a rule that allows some words."""
    return Rule(" or ".join(choices), lambda x: x in choices)


COUNT = Rule("an integer of at least 1", lambda x: is_number(x) and isinstance(x, Integral) and int(x) >= 1)
SEVERAL = Rule("an integer of at least 2", lambda x: COUNT.holds(x) and x >= 2)
# Of Monte-Carlo rollouts: the random numbers of all steps are in memory, and errors of few samples say little.
HORIZON = Rule("an integer in [1, 100000]", lambda x: COUNT.holds(x) and x <= 100_000)
ENOUGH = Rule("an integer of at least 10, for errors that can be relied on", lambda x: COUNT.holds(x) and x >= 10)
NATURAL = Rule("an integer in [0, 2^53)", lambda x: isinstance(x, int) and 0 <= x < 2**53)
FRACTION = Rule("in [0, 1]", lambda x: is_number(x) and 0 <= x <= 1)
NOT_NEGATIVE = Rule("a number of at least 0", lambda x: is_number(x) and x >= 0)
POSITIVE = Rule("a positive number", lambda x: is_number(x) and x > 0)
SWITCH = Rule("True or False", lambda x: isinstance(x, bool))
EACH_ONCE = Rule("a list that names nothing twice", lambda names: len(set(names)) == len(names))


def ruled(default: Any, rule: Rule, **metadata: Any) -> Any:
    """Return a field of a dataclass with its default and its rule."""
    return dataclasses.field(default=default, metadata={"rule": rule, **metadata})


def check_fields(record: Any) -> None:
    """Refuse a dataclass with a field that breaks its rule."""
    for field in dataclasses.fields(record):
        if "rule" in field.metadata:
            require(field.name, getattr(record, field.name), field.metadata["rule"])


def require(name: str, value: Any, rule: Rule) -> None:
    """Refuse a value, with the rule that it breaks."""
    if not rule.holds(value):
        raise InvalidValue(f"{name} is {value!r}: it must be {rule.text}")
