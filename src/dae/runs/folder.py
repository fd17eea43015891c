"""The folder of a run: what lies where in it, who may write to it, and the status of the run."""

import contextlib
import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from dae.errors import InUse, UserError
from dae.files import write_atomically
from dae.runs.checkpoints import Checkpoints
from dae.runs.episodes import Episodes, read_episodes
from dae.runs.records import Provenance, State, Status
from dae.runs.settings import RunSettings

SCHEMA = 1
# Processes that check whether a folder is in use hold its lock for a moment.
_SECONDS_FOR_A_LOOK = 0.5
_SIGNS = {"config.json", "status.json", "monitor.csv"}
_NOT_RUNS = {"checkpoints", "tensorboard"}


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
        self.tensorboard = path / "tensorboard"
        self.curve = path / "learning_curve.png"
        self.film = path / "episode.gif"
        self.error = path / "error.txt"
        self.log = path / "log.txt"

    @property
    def exists(self) -> bool:
        return self.config.is_file()

    def write_config(self, settings: RunSettings, made_with: Provenance) -> None:
        """Write the resolved settings, once."""
        content = {"schema": SCHEMA, "settings": settings.to_json(), "made_with": dataclasses.asdict(made_with)}
        write_atomically(self.config, json.dumps(content, indent=2).encode() + b"\n")

    def read_config(self) -> RunConfig:
        """Return the settings as they were written."""
        if not self.exists:
            raise UserError(f"there is no run at {self.path}: it has no config.json")
        try:
            config = msgspec.json.decode(self.config.read_bytes(), type=dict[str, Any])
            schema = msgspec.convert(config["schema"], int)
            if schema <= SCHEMA:
                made_with = msgspec.convert(config["made_with"], Provenance)
                settings = config["settings"]
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise UserError(f"{self.config} is not the config of a run: {error}") from error
        if schema > SCHEMA:
            raise UserError(f"{self.path} was written by a newer version (schema {schema}): upgrade dae-rl")
        return RunConfig(RunSettings.from_json(settings, self.config), made_with)

    def write_status(self, status: Status) -> None:
        """Write the status of the run, for people and programs that look at it from outside."""
        content = {k: v for k, v in dataclasses.asdict(status).items() if k != "error" or v is not None}
        write_atomically(self.status, json.dumps(content | {"updated": time.time()}, indent=2).encode() + b"\n")

    def read_status(self) -> Status:
        """Return the status of the run; one that says it is running but has no process was interrupted."""
        try:
            status = msgspec.json.decode(self.status.read_bytes(), type=Status)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return Status()
        if status.state is State.RUNNING and not self.is_locked():
            return dataclasses.replace(status, state=State.INTERRUPTED)
        return status

    def read_episodes(self) -> Episodes:
        return read_episodes(self.monitor)

    def read_all_episodes(self) -> Episodes:
        """Return the episodes of a finished run; it has written all of them, so that a cut in the file is damage."""
        if not self.monitor.is_file():
            raise UserError("it has no monitor.csv")
        episodes = self.read_episodes()
        with self.monitor.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            if file.read() != b"\n":
                raise UserError("its monitor.csv ends within a line")
        expected = self.read_status().episodes
        if expected is not None and expected != len(episodes):
            raise UserError(f"its monitor.csv has {len(episodes):,} episodes, its status.json {expected:,}")
        return episodes

    def make(self) -> None:
        """Make the folder, if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(
                f"{self.path} cannot be a folder, because a file is in its place: choose another"
            ) from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out; the lock is released when the process ends, however it ends."""
        self.make()
        with (self.path / "lock").open("a+") as file:
            deadline = time.monotonic() + _SECONDS_FOR_A_LOOK
            while not _take(file, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    file.seek(0)
                    raise InUse(
                        f"{self.path} is in use by another process ({file.read().strip() or 'unknown'}); wait for it, "
                        "stop it, or choose another folder"
                    )
                time.sleep(0.01)
            file.truncate(0)
            file.write(f"process {os.getpid()}")
            file.flush()
            yield

    def is_locked(self) -> bool:
        """Say whether a process is at work in this folder."""
        try:
            with (self.path / "lock").open() as file:
                return not _take(file, fcntl.LOCK_SH)
        except (FileNotFoundError, NotADirectoryError):
            return False


def _take(file: IO[str], kind: int) -> bool:
    """Take a lock, if it is free; it is released when the file is closed."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_runs(roots: Sequence[Path]) -> list[RunFolder]:
    """Return every folder at or below the roots that has a file of a run in it, by path; each once."""
    found: dict[Path, Path] = {}
    for root in roots:
        if not root.is_dir():
            raise UserError(f"there is no folder {root}; name the folder that runs are kept in")
        for place, inside, files in os.walk(root):
            inside[:] = [name for name in inside if name not in _NOT_RUNS]
            if _SIGNS & set(files):
                found.setdefault(Path(place).resolve(), Path(place))
    return [RunFolder(path) for path in sorted(found.values())]
