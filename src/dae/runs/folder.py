"""The folder of a run: what lies where in it, who may write to it, and the status of the run."""

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dae.errors import InvalidValue, UserError, one_line
from dae.files import read_file, replace_atomically, write_atomically
from dae.rules import NATURAL, require
from dae.runs.checkpoints import Checkpoints
from dae.runs.digest import Digest, read_digest
from dae.runs.episodes import Episodes, read_episodes
from dae.runs.evaluations import Evaluations, read_evaluations
from dae.runs.lock import FolderLock
from dae.runs.records import Provenance, State, Status
from dae.runs.settings import RunSettings
from dae.serialization import BadData, parse_json
from dae.text import plural

SCHEMA = 1
_LARGEST = 2**20  # bytes of config.json and status.json
_SIGNS = {"config.json", "status.json", "monitor.csv"}
_NOT_RUNS = {"checkpoints", "best", "tensorboard", "wandb"}


class RunConfig(NamedTuple):
    """What config.json holds."""

    settings: RunSettings
    made_with: Provenance


class RunFolder:
    """Paths and small files of one run; the folder can be moved at any time the run is not running."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")
        self.config = path / "config.json"
        self.status = path / "status.json"
        self.monitor = path / "monitor.csv"
        self.digest = path / "scores.json"  # in place of the monitor, where a run was archived
        self.evaluations = path / "evaluations.csv"
        self.best = Checkpoints(path / "best")  # the agent with the best evaluation
        self.tensorboard = path / "tensorboard"
        self.wandb = path / "wandb"
        self.curve = path / "learning_curve.png"
        self.film = path / "episode.gif"
        self.explorer = path / "explore" / "index.html"
        self.error = path / "error.txt"
        self.log = path / "log.txt"
        self.lock = FolderLock(path)

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.config)

    def write_config(self, settings: RunSettings, made_with: Provenance) -> None:
        """Write the resolved settings, once."""
        content = {"schema": SCHEMA, "settings": settings.to_json(), "made_with": dataclasses.asdict(made_with)}
        replace_atomically(self.config, json.dumps(content, indent=2).encode() + b"\n")

    def read_config(self) -> RunConfig:
        """Return the settings as they were written."""
        if not self.exists:
            raise UserError(f"there is no run at {self.path}: it has no config.json")
        try:
            config = parse_json(read_file(self.config, _LARGEST), dict[str, Any])
            schema = msgspec.convert(config["schema"], int)
            if schema <= SCHEMA:
                made_with = msgspec.convert(config["made_with"], Provenance)
                settings = config["settings"]
        except (BadData, msgspec.ValidationError, KeyError) as error:
            raise UserError(f"{self.config} is not the config of a run: {one_line(error)}") from error
        except OSError as error:
            raise UserError(f"{self.config} cannot be read: {error.strerror}") from error
        if schema > SCHEMA:
            raise UserError(f"{self.path} was written by a newer version (schema {schema}): upgrade dae-rl")
        return RunConfig(RunSettings.from_json(settings, self.config), made_with)

    def write_status(self, status: Status) -> None:
        """Write the status of the run, for people and programs that look at it from outside."""
        content = {k: v for k, v in dataclasses.asdict(status).items() if k != "error" or v is not None}
        replace_atomically(self.status, json.dumps(content | {"updated": time.time()}, indent=2).encode() + b"\n")

    def read_status(self) -> Status:
        """Return the status of the run; one that says it is running but has no process was interrupted."""
        try:
            status = parse_json(read_file(self.status, _LARGEST), Status)
            for count in (status.frames, status.total_frames, status.episodes or 0):
                require("a count of frames or episodes", count, NATURAL)
        except FileNotFoundError:
            return Status()
        except (OSError, InvalidValue) as error:
            return Status(State.UNKNOWN, error=f"its status.json cannot be read: {one_line(error)}")
        if status.state is State.RUNNING and self.is_locked() is False:
            return dataclasses.replace(status, state=State.INTERRUPTED)
        return status

    def read_episodes(self) -> Episodes:
        self.require_whole()
        return read_episodes(self.monitor)

    def read_evaluations(self) -> Evaluations:
        return read_evaluations(self.evaluations)

    def read_all_episodes(self) -> Episodes:
        """Return the episodes of a finished run; it has written all of them, so that a cut in the file is damage."""
        episodes = read_episodes(self.monitor, whole=True)
        self._require_all(len(episodes), self.monitor)
        return episodes

    def _require_all(self, episodes: int, file: Path) -> None:
        expected = self.read_status().episodes
        if expected is not None and expected != episodes:
            raise UserError(f"its {file.name} has {plural(episodes, 'episode')}, its status.json {expected:,}")

    @property
    def is_archived(self) -> bool:
        """Say whether only a digest of the episodes is left."""
        return os.path.lexists(self.digest) and not os.path.lexists(self.monitor)

    def write_archive(self, source: "RunFolder", digest: Digest) -> None:
        """Make this folder a compact copy of a finished run; what makes it one of a finished run comes last."""
        write_atomically(self.digest, digest.to_bytes())
        for target, original in ((self.config, source.config), (self.status, source.status)):
            write_atomically(target, read_file(original, _LARGEST))

    def archives(self, path: Path) -> bool:
        """Say whether a path in this folder is what `write_archive` wrote, or was about to write."""
        names = [file.name for file in (self.digest, self.config, self.status)]
        return path.name in names or path.name.startswith(tuple(f".{name}." for name in names))

    def require_whole(self) -> None:
        """Refuse a run that was archived."""
        if self.is_archived:
            raise UserError(f"{self.path} is an archive of a run: it has scores and settings, no episodes and no agent")

    def read_digest(self, settings: RunSettings) -> Digest | None:
        """Return the scores of a finished run in short, None if it has none."""
        if self.is_archived:
            digest = read_digest(self.digest)
            self._require_all(digest.episodes, self.digest)
            return digest
        episodes = self.read_all_episodes()
        return Digest.of(episodes, settings.frames, settings.family.frames_per_step) if len(episodes) else None

    def make(self) -> None:
        """Make the folder, if it is not there."""
        make_folder(self.path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other processes out of it."""
        self.make()
        with self.lock.held():
            self.require_plain()
            yield

    def is_locked(self) -> bool | None:
        """Say whether a process is at work in this folder; None if that cannot be told."""
        return self.lock.is_taken()

    def require_plain(self) -> None:
        """Refuse a folder with anything but files and folders in it: to write to a link changes files elsewhere."""
        for path in self.path.iterdir():
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise UserError(f"{path} is a link or a device: a run writes to files and folders only; move it away")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"{path} cannot be a folder, because a file is in its place: choose another") from error


def find_runs(
    roots: Sequence[Path], tell_unreadable: Callable[[str, str], None] = lambda path, reason: None
) -> list[RunFolder]:
    """Return every folder at or below the roots that has a file of a run in it, by path; each once.

    `tell_unreadable` is told of folders that cannot be looked into, and why.
    """

    def tell(error: OSError) -> None:
        tell_unreadable(str(error.filename), f"it cannot be looked into: {error.strerror}")

    found: dict[Path, Path] = {}
    for root in roots:
        if not root.is_dir():
            raise UserError(f"there is no folder {root}; name the folder that runs are kept in")
        for place, inside, files in os.walk(root, onerror=tell):
            inside[:] = [name for name in inside if name not in _NOT_RUNS]
            if _SIGNS & set(files):
                found.setdefault(Path(place).resolve(), Path(place))
    return [RunFolder(path) for path in sorted(found.values())]
