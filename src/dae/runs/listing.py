"""A table of runs, for people (`dae runs`)."""

from pathlib import Path

from dae.errors import UserError
from dae.runs.folder import RunFolder, find_runs


def list_runs(root: Path) -> str:
    """Return a table of the runs at or below a folder: state, frames, score, speed."""
    rows, foreign = [], 0
    for folder in find_runs([root]):
        try:
            rows.append(_row(folder, root))
        except UserError:
            foreign += 1
    table = _table([("run", "state", "frames", "last-100", "frames/s"), *rows]) if rows else f"no runs in {root}"
    return table + (f"\n{foreign} more with files of a run, but without settings that can be read" if foreign else "")


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
