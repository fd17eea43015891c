"""The progress of a long piece of work: a live bar on a terminal, elsewhere a line from time to time."""

import sys
import time
from threading import Lock
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 20.0


class WorkProgress:
    """Units done, units per second, time left, and any further text."""

    def __init__(self, total: int, start: int, unit: str) -> None:
        self._total, self._start, self._unit = total, start, unit
        self.rate = 0.0  # units per second
        self._began = time.monotonic()
        self._printed = self._began
        self._done = start
        self._lock = Lock()
        self._bar: Progress | None = None
        if sys.stdout.isatty():
            self._bar = Progress(
                TextColumn("{task.fields[phase]}"),
                BarColumn(),
                TextColumn(f"{{task.completed:,}}/{{task.total:,}} {unit}"),
                TextColumn("{task.fields[rate]:,.0f}/s"),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[news]}"),
                console=Console(),
                refresh_per_second=4,
            )
            self._task = self._bar.add_task("", total=total, completed=start, phase="", rate=0.0, news="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, more: int, phase: str, news: str) -> None:
        """Count more units as done; several threads may call this."""
        with self._lock:
            self._done += more
            self.update(self._done, phase, news)

    def update(self, done: int, phase: str, news: str, *, rate_counts: bool = True) -> None:
        """Show the progress. A phase that does other work than the rest does not change the rate."""
        if rate_counts:
            self.rate = (done - self._start) / max(1e-9, time.monotonic() - self._began)
        if self._bar is not None:
            self._bar.update(self._task, completed=min(done, self._total), phase=phase, rate=self.rate, news=news)
        elif time.monotonic() - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            left = max(0, self._total - done) / max(1.0, self.rate)
            print(
                f"{phase}: {done:,} of {self._total:,} {self._unit}, {self.rate:,.0f}/s, {format_duration(left)} left, "
                f"{news}",
                flush=True,
            )


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
