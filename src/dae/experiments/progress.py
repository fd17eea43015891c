"""How far a long piece of work is: a live bar on a terminal, now and then a line elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES = 20.0


class TrainingProgress:
    """Frames, frames a second, time left, score and episodes of a run."""

    def __init__(self, total: int, start: int) -> None:
        self._total, self._start = total, start
        self.rate = 0.0  # frames a second while it trained
        self._began = time.monotonic()
        self._printed = self._began
        self._bar: Progress | None = None
        if sys.stdout.isatty():
            self._bar = Progress(
                TextColumn("{task.fields[phase]}"),
                BarColumn(),
                TextColumn("{task.completed:,}/{task.total:,} frames"),
                TextColumn("{task.fields[rate]:,.0f}/s"),
                TimeRemainingColumn(compact=True),
                TextColumn("last-100 score {task.fields[score]}  {task.fields[episodes]:,} episodes"),
                console=Console(),
                refresh_per_second=4,
            )
            self._task = self._bar.add_task(
                "", total=total, completed=start, phase="training", rate=0.0, score="-", episodes=0
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, frames: int, score: float | None, episodes: int, phase: str = "training") -> None:
        """Show how far it is."""
        if phase == "training":
            self.rate = (frames - self._start) / max(1e-9, time.monotonic() - self._began)
        shown = "-" if score is None else f"{score:.2f}"
        if self._bar is not None:
            done = min(frames, self._total)
            self._bar.update(self._task, completed=done, phase=phase, rate=self.rate, score=shown, episodes=episodes)
        elif time.monotonic() - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            left = max(0, self._total - frames) / max(1.0, self.rate)
            print(
                f"{phase}: {frames:,} of {self._total:,} frames, {self.rate:,.0f}/s, {_duration(left)} left, "
                f"last-100 score {shown}, {episodes:,} episodes",
                flush=True,
            )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
