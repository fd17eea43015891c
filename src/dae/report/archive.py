"""`dae archive`: compact copies of finished runs, small enough to be kept in a repository."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from dae.errors import UserError, readable
from dae.report.reading import LeftOut, Result, count_left_out, read_results, require_some
from dae.report.text import plural
from dae.runs import RunFolder, find_runs
from dae.terminal.progress import WorkProgress


@dataclass(frozen=True)
class ArchiveConfig:
    """Write compact copies of finished runs, some kilobytes each, whose reports are the same to the last digit.

    dae archive runs --out results
    dae archive runs other-runs --out results && dae report results
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS ...")] = (Path("runs"),)
    """Folders that runs are kept in."""
    out: Path = field(default=Path("archive"))
    """Folder that the archive is written to; runs that are there already are brought up to date."""


def archive(config: ArchiveConfig) -> int:
    """Write a compact copy of each finished run, and say which were left out."""
    unreadable: list[LeftOut] = []
    found = find_runs(config.runs, lambda path, reason: unreadable.append(LeftOut(path, "unreadable", reason)))
    folders = [folder for folder in found if not _is_copy(folder.path, config)]
    with WorkProgress(len(folders), 0, "runs") as progress:
        records = read_results(folders, lambda: progress.advance(1, "reading", ""))
    require_some([*records, *unreadable])
    results = [record for record in records if isinstance(record, Result)]
    left_out = [*(record for record in records if isinstance(record, LeftOut)), *unreadable]
    for place, result in _places(config, results):  # all of which are checked before anything is written
        place.write_archive(RunFolder(Path(result.path)), result.digest)
    for left in left_out:
        print(f"left out: {readable(left.path)}: {left.reason}")
    print(f"{plural(len(results), 'run')} in {config.out}; {count_left_out(left_out)}")
    return 0


def _is_copy(path: Path, config: ArchiveConfig) -> bool:
    """Say whether a folder was found only because the archive is within a folder of runs."""
    out = config.out.resolve()
    asked = any(root.resolve().is_relative_to(out) for root in config.runs)
    return not asked and path.resolve().is_relative_to(out)


def _places(config: ArchiveConfig, results: list[Result]) -> list[tuple[RunFolder, Result]]:
    """Return where each run goes: the same path, below the archive in place of the folder that it was found in."""
    taken: dict[Path, str] = {}
    places = []
    for result in results:
        source = Path(result.path)
        root = next(root for root in config.runs if source.is_relative_to(root))
        target = RunFolder(config.out / source.relative_to(root))
        if target.path in taken:
            raise UserError(
                f"{taken[target.path]} and {result.path} would be the same folder of {config.out}: archive them one "
                f"after the other, with an --out for each, such as {config.out / 'NAME'}"
            )
        taken[target.path] = result.path
        _require_replaceable(target, result)
        places.append((target, result))
    return places


def _require_replaceable(target: RunFolder, result: Result) -> None:
    """Refuse to replace anything but what this command wrote of the same run, or of its beginning."""
    others = [] if not target.path.exists() else [path for path in target.path.iterdir() if not target.archives(path)]
    if others:
        raise UserError(
            f"{others[0]} is not a file of an archive: choose another --out than the folder of something else"
        )
    if not target.exists:
        return  # nothing, or what an interrupted command left
    there, ours = target.read_config(), result.settings
    if ours.frames > there.settings.frames:  # it was extended since
        before = there.settings
        ours = dataclasses.replace(ours, frames=before.frames, extended_from=before.extended_from)
    if (ours, result.made_with) != there:
        raise UserError(f"{target.path} is the archive of another run than {result.path}: choose another --out")
