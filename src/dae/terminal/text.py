"""How numbers are written in lines for the user."""


def plural(number: int, one: str, many: str = "") -> str:
    """Write how many there are of something.

    >>> plural(1, "step"), plural(2500, "step")
    ('1 step', '2,500 steps')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ordinal(number: int) -> str:
    """Write the place of something in an order.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 32, 1013)]
    ['1st', '2nd', '3rd', '4th', '11th', '32nd', '1,013th']
    """
    teens = number % 100 in (11, 12, 13)
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def short_number(value: float) -> str:
    """Write a number with at most two decimals, and none that say nothing.

    >>> [short_number(x) for x in (21.0, -183.905, 0.5, -0.001, 12_000)]
    ['21', '-183.91', '0.5', '0', '12,000']
    """
    return f"{round(value, 2) + 0.0:,.2f}".rstrip("0").rstrip(".")
