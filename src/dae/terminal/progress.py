"""The progress of a long piece of work: two live lines on a terminal, elsewhere a line from time to time."""

import time
from collections.abc import Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from dae.terminal.live import LiveDisplay, can_redraw

SECONDS_BETWEEN_LINES = 20.0  # where there is no terminal
_WIDEST_PHASE = 10
Part = tuple[str, str]  # a piece of text, and how it is written where there is little room


class Pace:
    """How fast work goes, measured over whole rounds of it: a part of a round may be much faster than the rest."""

    def __init__(self, done: int, unknown: str = "first iteration") -> None:
        self.unknown = unknown  # what is said in place of a speed that is not known yet
        self._first = self._last = (time.monotonic(), done)

    def mark(self, done: int) -> None:
        """Note that a round has ended, with so many units done."""
        self._last = (time.monotonic(), done)

    @property
    def rate(self) -> float:
        """Units per second; 0 as long as it is not known."""
        (began, before), (ended, done) = self._first, self._last
        return (done - before) / max(1e-9, ended - began)

    def seconds_left(self, total: int) -> float | None:
        """Return the seconds until so many units are done, or None as long as that is not known."""
        ended, done = self._last
        return max(0.0, (total - done) / self.rate - (time.monotonic() - ended)) if self.rate > 0 else None


class WorkProgress:
    """The share that is done and the time left; below, the phase, units done, units per second, and any further text.

    Narrow terminals get shorter numbers, and lose the further text from its end.
    """

    def __init__(self, total: int, start: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._pace = Pace(start, unknown="")
        self._printed = time.monotonic()
        self._done = start
        self._lock = Lock()
        self._shown: tuple[int, str, float | None, Sequence[Part], Pace] = (start, "", None, (), self._pace)
        self._live = LiveDisplay(self) if can_redraw() else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, at)

    def advance(self, more: int, phase: str, news: str) -> None:
        """Count more units as done; several threads may call this."""
        with self._lock:
            self.reach(self._done + more, phase, news)

    def reach(self, done: int, phase: str, news: str) -> None:
        """Show that so many units are done, each of them a round of its own."""
        if done > self._done:
            self._done = done
            self._pace.mark(done)
        self.update(done, phase, [(news, news)], self._pace)

    def update(self, done: int, phase: str, news: Sequence[Part], pace: Pace, share: float | None = None) -> None:
        """Show the progress, at a pace that the caller measures, with the share of the phase that is done."""
        self._shown = (done, phase, share, news, pace)  # the display reads it when it is drawn
        if self._live is None and time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            print(self._line(), flush=True)

    def _line(self) -> str:
        done, phase, share, news, pace = self._shown
        left = pace.seconds_left(self._total)
        speed = pace.unknown if left is None else f"{_speed(pace.rate, '')}, {format_duration(left)} left"
        parts = [f"{done:,} of {self._total:,} {self._unit}", speed, *(text for text, _ in news)]
        return f"{phase}{'' if share is None else f' {percent(share)}'}: {', '.join(filter(None, parts))}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        done, phase, share, news, pace = self._shown
        # In columns of fixed width, so that nothing moves when the phase changes.
        doing = phase if share is None else f"{phase:{_WIDEST_PHASE}} {percent(share):>4}"
        yield bar_line(done, self._total, pace.seconds_left(self._total))
        parts = [(doing, doing), count_part(done, self._total, self._unit), rate_part(pace.rate, self._unit), *news]
        if not pace.rate:
            parts[2] = (pace.unknown, pace.unknown)
        yield Text(fitted(parts, options.max_width), no_wrap=True)


# Parts of displays. --------------------------------------------------------------------------------------------------


def bar_line(done: int, total: int, seconds_left: float | None) -> Table:
    """Return a line with a bar, the percentage, and the time left."""
    left = "time left not known yet" if seconds_left is None else f"{format_duration(seconds_left)} left"
    line = Table.grid(Column(ratio=1), Column(no_wrap=True), expand=True)
    share = min(1.0, done / max(1, total))
    line.add_row(ProgressBar(total=1.0, completed=share), f"  {percent(share):>4}  {left}")
    return line


def count_part(done: int, total: int, unit: str) -> Part:
    """Return how much of it is done, exactly or in short."""
    return f"{done:,}/{total:,} {unit}", f"{compact(done)}/{compact(total)} {unit}"


def rate_part(rate: float, unit: str) -> Part:
    """Return a speed, with or without its unit."""
    return _speed(rate, f" {unit}"), _speed(rate, "")


def _speed(rate: float, unit: str) -> str:
    """Write a speed, of slow work per minute.

    >>> _speed(1234.5, " frames"), _speed(0.05, " trials")
    ('1,234 frames/s', '3.0 trials/min')
    """
    return f"{rate:,.0f}{unit}/s" if rate >= 1 else f"{60 * rate:.1f}{unit}/min"


def fitted(parts: Sequence[Part], width: int) -> str:
    """Write parts side by side: where they do not fit, those in short that save most, then without the last ones.

    >>> fitted([("1,200/9,000 frames", "1.2K/9K frames"), ("12 episodes", "12 episodes")], 27)
    '1.2K/9K frames  12 episodes'
    """
    parts = [part for part in parts if part[0]]
    texts = [text for text, _ in parts]
    for place in sorted(range(len(parts)), key=lambda place: len(parts[place][1]) - len(parts[place][0])):
        if _width(texts) > width:
            texts[place] = parts[place][1]
    while len(texts) > 1 and _width(texts) > width:
        texts.pop()
    return "  ".join(texts)[:width]


def _width(texts: Sequence[str]) -> int:
    return len("  ".join(texts))


def percent(share: float) -> str:
    """Write a share in percent, rounded down: only what is done is 100%."""
    return f"{int(100 * share)}%"


def compact(number: int) -> str:
    """Write a whole number in at most five characters, rounded down.

    >>> compact(1_234_567), compact(10_000_000), compact(131_072), compact(999)
    ('1.2M', '10M', '131K', '999')
    """
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= 100 * size:
            return f"{number // size}{unit}"
        if number >= size:
            return f"{10 * number // size / 10:g}{unit}"
    return str(number)


def format_duration(seconds: float) -> str:
    """Write a time as a clock does, or in days if it takes longer than two."""
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:.1f} days"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
