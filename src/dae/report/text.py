"""How numbers and lists are written in a report."""

import math
import re
from collections.abc import Iterable, Sequence

from dae.catalog import describe
from dae.envs import families
from dae.paper import Score
from dae.text import (
    count_text,
    decimals_for,
    plural as plural,  # for all of the report
    with_error,
)

METRICS = {"overall": "Overall", "last": "Last"}


def method_name(method: str) -> str:
    return describe(method).label


def domain_name(domain: str) -> str:
    return next(family.label for family in families() if family.name == domain)


def order(known: Sequence[str], name: str) -> tuple[int, str]:
    """Sort names that are known in their order, others after them."""
    return (known.index(name) if name in known else len(known), name)


def span(numbers: Iterable[int]) -> str:
    """Write equal numbers as one number, different ones as a range.

    >>> span([3, 3]), span([2, 3]), span([500_000, 10_000_000])
    ('3', '2 to 3', '500K to 10M')
    """
    ordered = sorted(numbers)
    least, largest = ordered[0], ordered[-1]
    return count_text(least) if least == largest else f"{count_text(least)} to {count_text(largest)}"


def score_decimals(scores: Iterable[Score]) -> int:
    """Return the decimals of scores that stand together, more for a small standard error: two if all are below 10, one
    below 10,000, none if a larger one is among them.

    >>> score_decimals([Score(4.3712, 0.128)]), score_decimals([Score(14.0, 2.3), Score(0.5, 0.004)])
    (2, 3)
    >>> score_decimals([Score(9286.7, 219.8), Score(11440.0, 358.6)])
    0
    """
    known = [score for score in scores if not math.isnan(score.mean)]
    largest = max((abs(score.mean) for score in known), default=0.0)
    least = 0 if largest >= 10_000 else 1 if largest >= 10 else 2
    return decimals_for((score.error for score in known), least)


def score_text(score: Score | None, decimals: int | None = None) -> str:
    """Write mean ± standard error.

    >>> score_text(Score(4.3712, 0.128)), score_text(Score(844.66, 152.31)), score_text(Score(21.0, float("nan")))
    ('4.37 ± 0.13', '844.7 ± 152.3', '21.0')
    """
    if score is None or math.isnan(score.mean):
        return "–"
    return with_error(score.mean, score.error, score_decimals([score]) if decimals is None else decimals)


def printed_text(score: Score | None) -> str:
    """Write a score as the paper has printed it: with one decimal, even where its standard error is then 0.0."""
    return "–" if score is None else f"{score.mean:.1f} ± {score.error:.1f}"


def listed(names: Sequence[str]) -> str:
    """Write names one after the other: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def slug(text: str) -> str:
    """Return a text that is safe as part of a file's name.

    >>> slug("../a b")
    'a-b'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()


def number(value: float) -> float | None:
    """Return a number as files have it: what is unknown is empty, not NaN and not 0."""
    return None if math.isnan(value) else value
