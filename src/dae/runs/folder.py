"""The folder of a run: what lies where in it, who may write to it, and how it stands."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dae.files import write_atomically
from dae.runs.checkpoints import Checkpoints
from dae.runs.episodes import Episodes, read_episodes
from dae.runs.problem import InUse, RunProblem

SCHEMA = 1
# Others who look whether a folder is in use hold its lock for a moment.
_SECONDS_FOR_A_LOOK = 0.5


class RunFolder:
    """Paths and small files of one run; the folder can be moved at any time the run is not running."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")

    @property
    def exists(self) -> bool:
        return (self.path / "config.json").is_file()

    @property
    def monitor(self) -> Path:
        return self.path / "monitor.csv"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def curve(self) -> Path:
        return self.path / "learning_curve.png"

    @property
    def gif(self) -> Path:
        return self.path / "episode.gif"

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the resolved settings, once."""
        content = json.dumps({"schema": SCHEMA} | config, indent=2)
        write_atomically(self.path / "config.json", content.encode() + b"\n")

    def read_config(self) -> dict[str, Any]:
        """Return the settings as they were written."""
        if not self.exists:
            raise RunProblem(f"there is no run at {self.path}: it has no config.json")
        try:
            config: dict[str, Any] = json.loads((self.path / "config.json").read_bytes())
            schema = config.pop("schema")
            if schema <= SCHEMA:
                dict(config["settings"]), dict(config["made_with"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunProblem(f"{self.path / 'config.json'} is not the config of a run: {error}") from error
        if schema > SCHEMA:
            raise RunProblem(f"{self.path} was written by a newer version (schema {schema}): upgrade dae-rl")
        return config

    def write_status(self, **status: Any) -> None:
        """Say how the run stands, for people and programs that look at it from outside."""
        content = json.dumps(status | {"updated": time.time()}, indent=2)
        write_atomically(self.path / "status.json", content.encode() + b"\n")

    def read_status(self) -> dict[str, Any]:
        """Return how the run stands; one that says it is running but has no process was interrupted."""
        try:
            status: dict[str, Any] = dict(json.loads((self.path / "status.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            status = {"state": "interrupted"}
        if status.get("state") == "running" and not self.is_locked():
            status["state"] = "interrupted"
        return status

    def read_episodes(self) -> Episodes:
        return read_episodes(self.monitor)

    def make(self) -> None:
        """Make the folder, if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise RunProblem(
                f"{self.path} cannot be a folder, because a file is in its place: choose another"
            ) from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out; the lock goes with the process, however it ends."""
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
    """Take a lock, if it is free; it goes when the file is closed."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_runs(root: Path) -> list[RunFolder]:
    """Return the runs at or below a folder, by path."""
    return [RunFolder(path.parent) for path in sorted(root.rglob("config.json"))]
