"""A table of runs, for people (`dae runs`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dae.errors import UserError, one_line, readable
from dae.runs.folder import RunFolder, find_runs

_NONE = "-"


@dataclass(frozen=True)
class ListingConfig:
    """List the runs in a folder: state, frames, frames that a resume would continue at, score, speed.

    dae runs
    dae runs runs/CartPole-v1
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """Folder that runs are kept in."""


def list_runs(config: ListingConfig) -> int:
    """Print a table of the runs at or below a folder, and name the folders that are not in it."""
    left_out: list[tuple[str, str]] = []
    rows: list[tuple[str, ...]] = []
    for folder in find_runs([config.folder], lambda path, reason: left_out.append((path, reason))):
        try:
            rows.append(_row(folder, config.folder))
        except (UserError, OSError) as error:
            left_out.append((str(folder.path), one_line(error)))
    heads: tuple[str, ...] = ("run", "state", "frames", "checkpoint", "last-100", "frames/s", "evaluated", "best")
    if not any(row[-1] != _NONE for row in rows):  # nothing was evaluated
        heads, rows = heads[:-2], [row[:-2] for row in rows]
    print(_table([heads, *rows]) if rows else f"no runs in {config.folder}")
    for path, reason in left_out:
        print(f"left out: {readable(path)}: {reason}")
    return 0


def _row(folder: RunFolder, root: Path) -> tuple[str, ...]:
    settings, status = folder.read_config().settings, folder.read_status()
    saved = folder.checkpoints.newest_frames()
    return (
        readable(str(folder.path.relative_to(root))),
        status.state,
        f"{status.frames:,}/{settings.frames:,}",
        f"{saved:,}" if saved else _NONE,
        _score(status.score),
        f"{status.frames_per_second:,.0f}" if status.frames_per_second else _NONE,
        _score(status.evaluation),
        _score(status.best),
    )


def _score(score: float | None) -> str:
    return _NONE if score is None else f"{score:.2f}"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
