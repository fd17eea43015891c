"""A table of runs, for people (`dae runs`)."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from dae.errors import UserError
from dae.runs.folder import RunFolder, find_runs


@dataclass(frozen=True)
class ListingConfig:
    """List the runs in a folder: state, frames, score, speed."""

    folder: tyro.conf.Positional[Path] = Path("runs")
    """Folder that runs are kept in."""


def list_runs(config: ListingConfig) -> int:
    """Print a table of the runs at or below a folder."""
    rows, foreign = [], 0
    for folder in find_runs([config.folder]):
        try:
            rows.append(_row(folder, config.folder))
        except UserError:
            foreign += 1
    heads = ("run", "state", "frames", "last-100", "frames/s")
    print(_table([heads, *rows]) if rows else f"no runs in {config.folder}")
    if foreign:
        print(f"{foreign} more with files of a run, but without readable settings")
    return 0


def _row(folder: RunFolder, root: Path) -> tuple[str, ...]:
    settings, status = folder.read_config().settings, folder.read_status()
    return (
        str(folder.path.relative_to(root)),
        status.state,
        f"{status.frames:,}/{settings.frames:,}",
        "-" if status.score is None else f"{status.score:.2f}",
        f"{status.frames_per_second:,.0f}" if status.frames_per_second else "-",
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
