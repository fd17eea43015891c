"""`dae archive`: finished runs in short, small enough to be kept in a repository."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from dae.errors import UserError, readable
from dae.files import read_file, write_atomically
from dae.report.reading import LeftOut, Result, count_left_out, read_results, require_some
from dae.report.text import plural
from dae.runs import RunFolder, find_runs
from dae.terminal.progress import WorkProgress

_LARGEST = 2**20  # bytes of config.json and status.json


@dataclass(frozen=True)
class ArchiveConfig:
    """Keep finished runs in short, some kilobytes each: reports of them are those of the runs, to the last digit.

    dae archive runs --out results
    dae archive runs other-runs --out results && dae report results
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS ...")] = (Path("runs"),)
    """Folders that runs are kept in."""
    out: Path = field(default=Path("archive"))
    """Folder that the archive is written to; runs that are there already are brought up to date."""


def archive(config: ArchiveConfig) -> int:
    """Write a small copy of each finished run, and say which were left out."""
    unreadable: list[LeftOut] = []
    folders = find_runs(config.runs, lambda path, reason: unreadable.append(LeftOut(path, "unreadable", reason)))
    with WorkProgress(len(folders), 0, "runs") as progress:
        records = read_results(folders, lambda: progress.advance(1, "reading", ""))
    require_some([*records, *unreadable])
    results = [record for record in records if isinstance(record, Result)]
    left_out = [*(record for record in records if isinstance(record, LeftOut)), *unreadable]
    for place, result in _places(config, results):  # all of which are checked before anything is written
        source = RunFolder(Path(result.path))
        # What makes the folder one of a finished run comes last.
        write_atomically(place.digest, result.digest.to_bytes())
        write_atomically(place.config, read_file(source.config, _LARGEST))
        write_atomically(place.status, read_file(source.status, _LARGEST))
    for left in left_out:
        print(f"left out: {readable(left.path)}: {left.reason}")
    print(f"{plural(len(results), 'run')} in {config.out}; {count_left_out(left_out)}")
    return 0


def _places(config: ArchiveConfig, results: list[Result]) -> list[tuple[RunFolder, Result]]:
    """Return where each run goes: the same path, below the archive in place of the folder that it was found in."""
    taken: dict[Path, str] = {}
    places = []
    for result in results:
        source = Path(result.path)
        root = next(root for root in config.runs if source.is_relative_to(root))
        target = RunFolder(config.out / source.relative_to(root))
        if target.path in taken:
            raise UserError(f"{taken[target.path]} and {result.path} would be the same folder of {config.out}")
        taken[target.path] = result.path
        _require_replaceable(target, result)
        places.append((target, result))
    return places


def _require_replaceable(target: RunFolder, result: Result) -> None:
    """Refuse to replace anything but the archive of the same run."""
    if not target.path.exists() or not any(target.path.iterdir()):
        return
    if not target.is_archived or target.read_config().settings != result.settings:
        raise UserError(f"{target.path} is in use for something else than {result.path}: choose another --out")
