"""The progress of a sweep: a live table on a terminal, elsewhere a line from time to time."""

import sys
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dae.terminal.progress import format_duration
from dae.text import plural

if TYPE_CHECKING:
    from dae.experiments.sweep.jobs import Job

_SECONDS_BETWEEN_LINES = 20.0
_SECONDS_BETWEEN_TABLES = 1.0


class SweepDisplay:
    """Runs by state, those under way one by one, and the time left."""

    def __init__(self, total: int, start: int) -> None:
        self._total, self._start = total, start
        self._began = time.monotonic()
        self._shown = self._began - _SECONDS_BETWEEN_LINES
        self._live = Live(refresh_per_second=2) if sys.stdout.isatty() else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, jobs: "list[Job]", frames: int) -> None:
        """Update the display, if it is time."""
        now = time.monotonic()
        if now - self._shown < (_SECONDS_BETWEEN_LINES if self._live is None else _SECONDS_BETWEEN_TABLES):
            return
        self._shown = now
        line = self._line(jobs, frames)
        if self._live is None:
            print(line, flush=True)
        else:
            bar = ProgressBar(total=max(1, self._total), completed=frames)
            self._live.update(Group(self._table(jobs), bar, Text(line)))

    def _line(self, jobs: "list[Job]", frames: int) -> str:
        rate = (frames - self._start) / max(1e-9, time.monotonic() - self._began)
        left = f"{format_duration((self._total - frames) / rate)} left" if rate > 0 else "time left not known yet"
        count = Counter(job.state for job in jobs)
        states = ", ".join(
            f"{count[state]} {state}" for state in ("running", "elsewhere", "waiting", "failed") if count[state]
        )
        share = frames / max(1, self._total)
        return (
            f"{count['finished']} of {plural(len(jobs), 'run')} finished, {states or 'none left'}; "
            f"{share:.1%} of all frames, {rate:,.0f}/s, {left}"
        )

    def _table(self, jobs: "list[Job]") -> Table:
        table = Table("run", "state", "frames", "frames/s", "last-100", box=None, pad_edge=False)
        for job in jobs:
            if job.state in ("running", "elsewhere", "failed"):
                score, speed = job.status.score, job.status.frames_per_second
                table.add_row(
                    job.run.name,
                    job.state,
                    f"{job.frames / job.run.config.frames:.0%}",
                    "-" if not speed else f"{speed:,.0f}",
                    "-" if score is None else f"{score:.2f}",
                )
        return table
