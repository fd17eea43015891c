"""How counts are written in messages."""


def plural(number: int, one: str, many: str = "") -> str:
    """Write a number of things.

    >>> plural(1, "seed"), plural(1_000, "seed"), plural(2, "process", "processes")
    ('1 seed', '1,000 seeds', '2 processes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
