"""The progress of a sweep: a live table on a terminal, elsewhere a line from time to time."""

import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from dae.terminal.live import LiveDisplay, can_redraw
from dae.terminal.progress import (
    SECONDS_BETWEEN_LINES,
    Pace,
    Part,
    bar_line,
    count_part,
    fitted,
    format_duration,
    percent,
    rate_part,
)
from dae.text import plural

if TYPE_CHECKING:
    from dae.experiments.sweep.jobs import Job

_SHOWN = ("running", "failed", "elsewhere")  # the states whose runs have a row, in this order
# What a row has besides the run's name, and how wide a terminal must be to have room for it.
_COLUMNS = {"state": 0, "last-100": 0, "frames/s": 70, "time left": 100}
_WIDTHS = {"state": 14, "last-100": 8, "frames/s": 8, "time left": 9}
_LINES_AROUND = 5  # head, rows left out, bar, summary, and the one with the cursor


class SweepDisplay:
    """Runs by state, those under way one by one, and the time left.

    The table fits the terminal: names are shortened, columns and rows left out.
    """

    def __init__(self, total: int, start: int) -> None:
        self._total, self._frames = total, start
        self._pace = Pace(start)
        self._printed = time.monotonic() - SECONDS_BETWEEN_LINES
        self._jobs: list[Job] = []
        self._note = ""
        self._live = LiveDisplay(self) if can_redraw() else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, at)

    def update(self, jobs: "list[Job]", frames: int) -> None:
        """Update the display; without a terminal print a line, if it is time."""
        self._jobs = jobs
        if frames != self._frames:  # runs tell their frames once an iteration, which may take minutes
            self._frames = frames
            self._pace.mark(frames)
        if self._live is None and time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            print(self._line(), flush=True)

    def note(self, text: str) -> None:
        """Show a text in place of the summary, on a terminal."""
        self._note = text

    @property
    def _seconds_left(self) -> float | None:
        given_up = sum(max(0, job.run.config.frames - job.frames) for job in self._jobs if job.state == "failed")
        return self._pace.seconds_left(self._total - given_up)

    def _line(self) -> str:
        left = self._seconds_left
        told = "time left not known yet" if left is None else f"{self._pace.rate:,.0f}/s, {format_duration(left)} left"
        count = Counter(job.state for job in self._jobs)
        states = ", ".join(
            f"{count[state]} {state}" for state in ("running", "elsewhere", "waiting", "failed") if count[state]
        )
        share = self._frames / max(1, self._total)
        return (
            f"{count['finished']} of {plural(len(self._jobs), 'run')} finished, {states or 'none left'}; "
            f"{share:.1%} of all frames, {told}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._table(options.max_width, console.size.height)
        yield bar_line(self._frames, self._total, self._seconds_left)
        yield Text(self._note[: options.max_width] or fitted(self._summary(), options.max_width), no_wrap=True)

    def _summary(self) -> list[Part]:
        """Return how many runs are in each state, and how far all of them are, the most important first."""
        jobs = self._jobs
        count = Counter(job.state for job in jobs)
        finished = f"{count['finished']:,} of {len(jobs):,} runs finished"
        states = [f"{count[s]:,} {s}" if count[s] else "" for s in ("failed", "running", "waiting", "elsewhere")]
        return [
            (finished, f"{count['finished']:,}/{len(jobs):,} finished"),
            *((state, state) for state in states),
            rate_part(self._pace.rate, "frames") if self._pace.rate > 0 else ("", ""),
            count_part(self._frames, self._total, "frames"),
        ]

    def _table(self, width: int, height: int) -> RenderResult:
        """Yield the runs that are under way or have failed, as many as there are lines for."""
        rows = sorted((j for j in self._jobs if j.state in _SHOWN), key=lambda job: _SHOWN.index(job.state))
        columns = [name for name, least in _COLUMNS.items() if width >= least]
        room = width - sum(2 + _WIDTHS[name] for name in columns)
        table = Table("run", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in columns:
            table.add_column(name, justify="right", min_width=_WIDTHS[name], no_wrap=True)
        most = max(1, height - _LINES_AROUND)
        for job in rows[:most]:
            cells = _cells(job)
            table.add_row(Text(shortened(job.run.name, room)), *(cells[name] for name in columns))
        yield table
        if len(rows) > most:
            yield Text(f"and {len(rows) - most} more")


def _cells(job: "Job") -> dict[str, str]:
    score, speed, frames = job.status.score, job.status.frames_per_second, job.run.config.frames
    left = max(0, frames - job.frames) / speed if speed and job.state != "failed" else None
    return {
        "state": f"{job.state} {percent(min(1.0, job.frames / frames)):>4}",
        "last-100": "-" if score is None else f"{score:.2f}",
        "frames/s": f"{speed:,.0f}" if speed and job.state != "failed" else "-",
        "time left": "-" if left is None else format_duration(left),
    }


def shortened(name: str, width: int) -> str:
    """Shorten the name of a run, if possible within the environment's: the rest tells runs apart.

    >>> shortened("MinAtar-SpaceInvaders-v1/dae-baseline/seed-12", 38)
    '…SpaceInvaders-v1/dae-baseline/seed-12'
    >>> shortened("MinAtar-SpaceInvaders-v1/dae-baseline/seed-12", 30)
    '…SpaceIn…/dae-baseline/seed-12'
    """
    if len(name) <= width:
        return name
    env, slash, rest = name.partition("/")
    _, _, game = env.partition("-")
    if "-" in game:  # a family, a game and its version
        env = f"…{game}"
    room = width - len(slash + rest)
    if room >= 4:
        return (env if len(env) <= room else f"{env[: room - 1]}…") + slash + rest
    end = max(1, (2 * width - 2) // 3)
    return f"{name[: max(0, width - end - 1)]}…{name[-end:]}"
