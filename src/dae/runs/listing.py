"""A table of runs, for people (`dae runs`)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dae.errors import UserError, one_line, readable
from dae.runs.folder import RunFolder, find_runs


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
    rows = []
    for folder in find_runs([config.folder], lambda path, reason: left_out.append((path, reason))):
        try:
            rows.append(_row(folder, config.folder))
        except (UserError, OSError) as error:
            left_out.append((str(folder.path), one_line(error)))
    heads = ("run", "state", "frames", "checkpoint", "last-100", "frames/s")
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
        f"{saved:,}" if saved else "-",
        "-" if status.score is None else f"{status.score:.2f}",
        f"{status.frames_per_second:,.0f}" if status.frames_per_second else "-",
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
