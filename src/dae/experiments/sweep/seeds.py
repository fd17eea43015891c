"""The seeds of a sweep: how many, or which."""

import re
from typing import Any

from tyro.constructors import PrimitiveConstructorSpec

from dae.rules import COUNT, EACH_ONCE, Rule

Seeds = int | tuple[int, ...]  # how many, or which
_MOST = 100_000  # in a range


def _are_seeds(value: Any) -> bool:
    return bool(value) and EACH_ONCE.holds(value) if isinstance(value, tuple) else COUNT.holds(value)


SEEDS = Rule(f"{COUNT.text} (how many seeds), or several seeds that name nothing twice", _are_seeds)


def parse_seeds(words: list[str]) -> Seeds:
    """Read one number as how many seeds, several as which, and 10-19 as a range of seeds.

    >>> parse_seeds(["5"]), parse_seeds(["0", "3"]), parse_seeds(["7", "10-12"]), parse_seeds(["7-7"])
    (5, (0, 3), (7, 10, 11, 12), (7,))
    """
    if len(words) == 1 and re.fullmatch(r"\d+", words[0]):
        return int(words[0])
    seeds: list[int] = []
    for word in words:
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not first <= last < first + _MOST:
            raise ValueError(
                f"{word!r} is not a seed or a range of at most {_MOST:,} seeds: write 5 for five seeds, 0 3 4 for "
                "these, 10-19 for those from 10 to 19"
            )
        seeds += range(first, last + 1)
    return tuple(seeds)


SEEDS_WORDS: PrimitiveConstructorSpec[Seeds | None] = PrimitiveConstructorSpec(
    nargs="*",
    metavar="SEEDS",
    instance_from_str=parse_seeds,
    is_instance=lambda value: isinstance(value, int | tuple | None),
    str_from_instance=lambda value: list(map(str, value if isinstance(value, tuple) else (value,))),
)
