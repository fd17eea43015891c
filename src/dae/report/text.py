"""How numbers and lists are written in a report."""

import math
import re
from collections.abc import Iterable, Sequence

from dae.catalog import describe
from dae.envs import families
from dae.paper import Score
from dae.text import plural as plural  # for all of the report

METRICS = {"overall": "Overall", "last": "Last"}


def method_name(method: str) -> str:
    return describe(method).label


def domain_name(domain: str) -> str:
    return next(family.label for family in families() if family.name == domain)


def order(known: Sequence[str], name: str) -> tuple[int, str]:
    """Sort names that are known in their order, others after them."""
    return (known.index(name) if name in known else len(known), name)


def count_text(number: int) -> str:
    """Write a whole number, such as one of frames.

    >>> [count_text(n) for n in (10_000_000, 1_500_000, 500_000, 131_072)]
    ['10M', '1.5M', '500K', '131,072']
    """
    for unit, size in (("M", 10**6), ("K", 10**3)):
        if number >= size and number * 10 % size == 0:
            return f"{number / size:g}{unit}"
    return f"{number:,}"


def span(numbers: Iterable[int]) -> str:
    """Write equal numbers as one number, different ones as a range.

    >>> span([3, 3]), span([2, 3]), span([500_000, 10_000_000])
    ('3', '2 to 3', '500K to 10M')
    """
    ordered = sorted(numbers)
    least, largest = ordered[0], ordered[-1]
    return count_text(least) if least == largest else f"{count_text(least)} to {count_text(largest)}"


def score_text(score: Score | None, *, printed: bool = False) -> str:
    """Write mean ± standard error; two decimals below 10, one above, and one in what the paper has printed.

    >>> score_text(Score(4.3712, 0.128)), score_text(Score(844.66, 152.31)), score_text(Score(21.0, float("nan")))
    ('4.37 ± 0.13', '844.7 ± 152.3', '21.0')
    """
    if score is None or math.isnan(score.mean):
        return "–"
    decimals = 1 if printed or abs(score.mean) >= 10 else 2
    error = "" if math.isnan(score.error) else f" ± {score.error:.{decimals}f}"
    return f"{score.mean:.{decimals}f}{error}"


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
