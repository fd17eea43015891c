"""`dae report`: from run folders to a report."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from dae.report.analysis import analyse
from dae.report.reading import LeftOut, read_results
from dae.report.writing import write_report
from dae.runs import Axis, find_runs
from dae.terminal.progress import WorkProgress


@dataclass(frozen=True)
class ReportConfig:
    """Summarise finished runs: tables, statistics and figures beside the paper's, and a page with all of it.

    dae report
    dae report runs other-runs --out report
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS ...")] = (Path("runs"),)
    """Folders that runs are kept in."""
    axis: Axis = "frames"
    """What curves are drawn against: all frames, or only those of completed episodes, as probably in the paper."""
    out: Path = field(default=Path("report"))
    """Folder that the report is written to."""


def report(config: ReportConfig) -> int:
    """Read the runs, say which count, and write the report."""
    unreadable: list[LeftOut] = []
    folders = find_runs(config.runs, lambda path, reason: unreadable.append(LeftOut(path, "unreadable", reason)))
    with WorkProgress(len(folders), 0, "runs") as progress:
        records = read_results(folders, lambda: progress.advance(1, "reading", ""), config.axis)
    analysis = analyse([*records, *unreadable])
    print(analysis.counted)
    for line in analysis.departures:
        print(f"not the paper's size: {line}")
    print(write_report(analysis, config.runs, config.out))
    return 0
