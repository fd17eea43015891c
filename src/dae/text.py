"""How numbers are written, in messages, tables and figures."""

import math
from collections.abc import Iterable, Sequence

_MOST_DECIMALS = 6


def plural(number: int, one: str, many: str = "") -> str:
    """Write a number of things.

    >>> plural(1, "seed"), plural(1_000, "seed"), plural(2, "process", "processes")
    ('1 seed', '1,000 seeds', '2 processes')
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


def count_text(number: int) -> str:
    """Write a whole number, such as one of frames.

    >>> [count_text(n) for n in (10_000_000, 1_250_000, 500_000, 131_072)]
    ['10M', '1.25M', '500K', '131,072']
    """
    for unit, size, decimals in (("M", 10**6, 100), ("K", 10**3, 10)):
        if abs(number) >= size and number * decimals % size == 0:
            return f"{number / size:g}{unit}"
    return f"{number:,}"


def decimals_for(errors: Iterable[float], least: int = 0) -> int:
    """Return how many decimals show a significant digit of each standard error; what is unknown or 0 needs none.

    >>> decimals_for([1.2, 0.034]), decimals_for([0.034], least=3), decimals_for([0.0, float("nan")])
    (2, 3, 0)
    """
    needed = [-math.floor(math.log10(error)) for error in errors if error > 0 and math.isfinite(error)]
    return min(max([least, *needed]), max(least, _MOST_DECIMALS))


def with_error(mean: float, error: float, decimals: int) -> str:
    """Write mean ± standard error, or the mean alone where there is no error.

    >>> with_error(4.3712, 0.128, 2), with_error(0.5, 0.0, 2), with_error(0.5, 1e-9, 2), with_error(21, float("nan"), 1)
    ('4.37 ± 0.13', '0.50 ± 0', '0.50 ± 1e-9', '21.0')
    """
    if math.isnan(error):
        return f"{mean:.{decimals}f}"
    written = f"{error:.{decimals}f}"
    if not float(written):  # rounding must not say that there is no error
        written = _scientific(error, 0) if error else "0"
    return f"{mean:.{decimals}f} ± {written}"


def short_text(mean: float, error: float) -> str:
    """Write mean ± standard error with one significant digit of the error, in at most 16 characters up to 10,000.

    >>> short_text(125.803, 0.0131), short_text(1.62e-6, 5.7e-7), short_text(0.00101, float("nan"))
    ('125.80 ± 0.01', '1.6e-6 ± 6e-7', '1.01e-3')
    """
    if abs(mean) >= 0.01 or not mean:
        known = error > 0 and math.isfinite(error)
        decimals = min(decimals_for([error]), 3) if known else 2 if abs(mean) >= 1 else 3
        if known and error < 10**-decimals / 2:
            return f"{mean:.{decimals}f} ± {_scientific(error, 0)}"
        return with_error(mean, error, decimals)
    if math.isnan(error):
        return _scientific(mean, 2)
    digits = math.floor(math.log10(abs(mean))) - math.floor(math.log10(error)) if error else 2
    return f"{_scientific(mean, min(max(digits, 0), 2))} ± {_scientific(error, 0) if error else '0'}"


def _scientific(number: float, decimals: int) -> str:
    """Write 1.6e-6 where Python writes 1.6e-06."""
    mantissa, exponent = f"{number:.{decimals}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Write rows with aligned columns: names to the left, numbers to the right.

    >>> print(aligned([["", "score"], ["DAE", "12.5"]]))
         score
    DAE   12.5
    """
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(first), *(text.rjust(width) for text, width in zip(row[1:], others, strict=True))]
        ).rstrip()
        for row in rows
    )
