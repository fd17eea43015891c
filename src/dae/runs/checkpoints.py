"""Checkpoints: named parts in a folder that is either complete and verified or ignored."""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dae.errors import UserError, one_line
from dae.files import read_file, sync_folder
from dae.serialization import BadData, parse_json

FORMAT = 1
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 2**20
_LARGEST_PART = 2**33
_NAME = re.compile(r"(\d{12})(-rollout)?")
_PART_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after a number of frames."""

    frames: int
    parts: Mapping[str, bytes]
    pending: bool = False  # the agent has not learned from the last rollout yet

    @property
    def name(self) -> str:
        return f"{self.frames:012d}{'-rollout' if self.pending else ''}"


class _Part(msgspec.Struct):
    """What a manifest says of a part."""

    size: int
    sha256: str


class _Manifest(msgspec.Struct):
    """What a checkpoint must hold."""

    format: int
    frames: int
    files: dict[str, _Part]
    pending: bool = False


class _Damaged(Exception):
    """A checkpoint that is not what was written."""


class Checkpoints:
    """The checkpoints of one run; the newest two are kept.

    A checkpoint is written into a temporary folder, its manifest (sizes and SHA-256 of all parts) last, and renamed
    into place: a kill at any moment leaves the ones before it as they were.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, unless it is there already."""
        target = self.folder / checkpoint.name
        if _is_whole(target):
            return target
        temporary = self.folder / f".saving-{os.getpid()}"
        self.folder.mkdir(exist_ok=True)
        self._sweep()
        try:
            temporary.mkdir()
            for name, content in checkpoint.parts.items():
                _write(temporary / name, content)
            files = {name: _described(content) for name, content in checkpoint.parts.items()}
            manifest = msgspec.json.encode(_Manifest(FORMAT, checkpoint.frames, files, checkpoint.pending))
            _write(temporary / _MANIFEST, msgspec.json.format(manifest, indent=1))
            sync_folder(temporary)
            _remove(target)
            temporary.rename(target)
        except BaseException:
            _remove(temporary)
            raise
        sync_folder(self.folder)
        self._prune()
        return target

    def newest(self, announce: Callable[[str], None]) -> Checkpoint | None:
        """Return the newest valid one, or None if there never was one; damaged ones are reported."""
        names = self._names()
        for name in reversed(names):
            try:
                return _read(self.folder / name)
            except (_Damaged, OSError) as problem:
                announce(
                    f"checkpoint {self.folder / name} cannot be used ({one_line(problem)}); trying the one before it"
                )
        if names:
            raise UserError(
                f"no checkpoint in {self.folder} can be used; restore one from a backup, or move the run's folder away "
                "to start from scratch"
            )
        return None

    def newest_frames(self) -> int:
        """Return the frames of the newest one that looks whole, without reading all of it; 0 if there is none."""
        for name in reversed(self._names()):
            with contextlib.suppress(_Damaged, OSError):
                _read_manifest(self.folder / name / _MANIFEST)
                return int(name[:12])
        return 0

    def forget_after(self, frames: int) -> None:
        """Remove those of later frames."""
        for name in self._names():
            if int(name[:12]) > frames:
                _remove(self.folder / name)

    def _names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        found = filter(None, (_NAME.fullmatch(path.name) for path in self.folder.iterdir()))
        return [name.group() for name in sorted(found, key=lambda name: (name[1], name[2] is None))]

    def _prune(self) -> None:
        """Keep the newest two: damaged ones do not count, and stay for as long as no two newer ones are whole."""
        whole = 0
        for name in reversed(self._names()):
            if whole == 2:
                _remove(self.folder / name)
            elif _is_whole(self.folder / name):
                whole += 1

    def _sweep(self) -> None:
        """Remove what interrupted saves left behind."""
        for leftover in self.folder.glob(".saving-*"):
            _remove(leftover)


def _remove(path: Path) -> None:
    """Remove a checkpoint, or what is in its place: `rmtree` would wait for a pipe, and leave a link."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _is_whole(folder: Path) -> bool:
    try:
        _read(folder)
    except (_Damaged, OSError, UserError):
        return False
    return True


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _read(folder: Path) -> Checkpoint:
    if folder.is_symlink():
        raise _Damaged("it is a link")
    manifest = _read_manifest(folder / _MANIFEST)
    if manifest.format > FORMAT:
        raise UserError(f"{folder} has format {manifest.format}; this version reads up to {FORMAT}: upgrade dae-rl")
    parts = {}
    for name, expected in manifest.files.items():
        if not _PART_NAME.fullmatch(name):
            raise _Damaged(f"{name!r} is not a valid name of a part")
        try:
            parts[name] = read_file(folder / name, min(expected.size, _LARGEST_PART))
        except OSError as error:
            raise _Damaged(f"{name} cannot be read: {error.strerror}") from error
        if _described(parts[name]) != expected:
            raise _Damaged(f"{name} has changed")
    checkpoint = Checkpoint(manifest.frames, parts, manifest.pending)
    if folder.name != checkpoint.name:
        raise _Damaged("its name does not match its number of frames")
    return checkpoint


def _described(content: bytes) -> _Part:
    return _Part(len(content), hashlib.sha256(content).hexdigest())


def _read_manifest(path: Path) -> _Manifest:
    try:
        return parse_json(read_file(path, _LARGEST_MANIFEST), _Manifest)
    except OSError as error:
        raise _Damaged(f"its manifest cannot be read: {error.strerror}") from error
    except BadData as error:
        raise _Damaged(f"its manifest cannot be read: {error}") from error
