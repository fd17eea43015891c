"""Checkpoints: named parts in a folder that is either complete and verified or ignored."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dae.errors import UserError
from dae.files import sync_folder

FORMAT = 1
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 2**20
_NAME = re.compile(r"\d{12}")
_PART_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after a number of frames."""

    frames: int
    parts: Mapping[str, bytes]


class _Part(msgspec.Struct):
    """What a manifest says of a part."""

    size: int
    sha256: str


class _Manifest(msgspec.Struct):
    """What a checkpoint must hold."""

    format: int
    frames: int
    files: dict[str, _Part]


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
        target = self.folder / f"{checkpoint.frames:012d}"
        if _is_whole(target):
            return target
        temporary = self.folder / f".saving-{os.getpid()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        try:
            temporary.mkdir()
            for name, content in checkpoint.parts.items():
                _write(temporary / name, content)
            files = {name: _described(content) for name, content in checkpoint.parts.items()}
            manifest = msgspec.json.encode(_Manifest(FORMAT, checkpoint.frames, files))
            _write(temporary / _MANIFEST, msgspec.json.format(manifest, indent=1))
            sync_folder(temporary)
            shutil.rmtree(target, ignore_errors=True)
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(self.folder)
        for old in self._names()[:-2]:
            shutil.rmtree(self.folder / old, ignore_errors=True)
        return target

    def newest(self, announce: Callable[[str], None]) -> Checkpoint | None:
        """Return the newest valid one, or None if there never was one; damaged ones are reported."""
        names = self._names()
        for name in reversed(names):
            try:
                return _read(self.folder / name)
            except (_Damaged, OSError) as problem:
                announce(f"checkpoint {self.folder / name} cannot be used ({problem}); trying the one before it")
        if names:
            raise UserError(
                f"no checkpoint in {self.folder} can be used; restore one from a backup, or move the run's folder away "
                "to start from scratch"
            )
        return None

    def newest_frames(self) -> int:
        """Return the frames of the newest one, valid or not; 0 if there is none."""
        return int((self._names() or ["0"])[-1])

    def _names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        return sorted(path.name for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def _sweep(self) -> None:
        """Remove what interrupted saves left behind."""
        for leftover in self.folder.glob(".saving-*"):
            shutil.rmtree(leftover, ignore_errors=True)


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
        path = folder / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size != expected.size:
            raise _Damaged(f"{name} is missing or has the wrong size")
        parts[name] = path.read_bytes()
        if _described(parts[name]) != expected:
            raise _Damaged(f"{name} has changed")
    if folder.name != f"{manifest.frames:012d}":
        raise _Damaged("its name does not match its number of frames")
    return Checkpoint(manifest.frames, parts)


def _described(content: bytes) -> _Part:
    return _Part(len(content), hashlib.sha256(content).hexdigest())


def _read_manifest(path: Path) -> _Manifest:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_MANIFEST:
        raise _Damaged("its manifest is missing")
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Damaged("its manifest cannot be read") from error
