"""Checkpoints: whole or ignored, never silently lost, and nothing but data."""

import json
import os
import shutil
from pathlib import Path

import pytest

from dae.errors import UserError
from dae.runs import Checkpoint, Checkpoints

PARTS = {"agent.zip": b"weights" * 100, "state.json": b"{}"}


def saved(folder: Path, *frames: int) -> Checkpoints:
    checkpoints = Checkpoints(folder)
    for frame in frames:
        checkpoints.save(Checkpoint(frame, PARTS | {"state.json": str(frame).encode()}))
    return checkpoints


def newest(checkpoints: Checkpoints) -> tuple[int | None, list[str]]:
    announced: list[str] = []
    checkpoint = checkpoints.newest(announced.append)
    return (None if checkpoint is None else checkpoint.frames), announced


def test_the_newest_comes_back_and_two_are_kept(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 5, 10, 20)
    assert newest(checkpoints) == (20, [])
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{10:012d}", f"{20:012d}"]
    assert newest(Checkpoints(tmp_path / "none")) == (None, [])


def truncate(folder: Path) -> None:
    (folder / "agent.zip").write_bytes(b"weights")


def flip(folder: Path) -> None:
    content = bytearray((folder / "agent.zip").read_bytes())
    content[13] ^= 1
    (folder / "agent.zip").write_bytes(content)


def empty(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"")


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def missing(folder: Path) -> None:
    (folder / "state.json").unlink()


def link(folder: Path) -> None:
    (folder / "state.json").rename(folder.parent / "elsewhere")
    (folder / "state.json").symlink_to(folder.parent / "elsewhere")


def outside(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["../outside"] = manifest["files"].pop("state.json")
    (folder / "manifest.json").write_text(json.dumps(manifest))


def another_frame(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"frames": 7}))


def giant_part(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["state.json"]["size"] = 2**60
    (folder / "manifest.json").write_text(json.dumps(manifest))


def giant_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b" " * 2**21)


DAMAGE = [truncate, flip, empty, no_manifest, missing, link, outside, another_frame, giant_part, giant_manifest]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_a_damaged_checkpoint_is_announced_and_the_one_before_it_used(damage: object, tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10, 20)
    damage(tmp_path / f"{20:012d}")  # type: ignore[operator]
    frames, announced = newest(checkpoints)
    assert frames == 10
    assert len(announced) == 1
    assert f"{20:012d} cannot be used" in announced[0]
    damage(tmp_path / f"{10:012d}")  # type: ignore[operator]
    with pytest.raises(UserError, match=r"no checkpoint in .* can be used; restore one from a backup"):
        newest(checkpoints)
    checkpoints.save(Checkpoint(20, PARTS))
    assert newest(checkpoints)[0] == 20, "a damaged one is replaced"


def test_damaged_ones_do_not_count_when_old_ones_are_removed(tmp_path: Path) -> None:
    """Both are damaged, a backup is restored, and the run goes on from there."""
    checkpoints = saved(tmp_path, 10)
    shutil.copytree(tmp_path / f"{10:012d}", tmp_path / "backup")
    checkpoints = saved(tmp_path, 50, 60)
    for frames in (50, 60):
        flip(tmp_path / f"{frames:012d}")
    shutil.move(tmp_path / "backup", tmp_path / f"{10:012d}")
    for frames, kept in ((20, {10, 20}), (30, {20, 30}), (40, {30, 40})):
        saved(tmp_path, frames)
        assert newest(checkpoints)[0] == frames
        assert {int(path.name) for path in tmp_path.iterdir()} == kept | {50, 60}
    saved(tmp_path, 50)
    saved(tmp_path, 60)
    assert {int(path.name) for path in tmp_path.iterdir()} == {50, 60}
    assert newest(checkpoints) == (60, [])


def test_a_manifest_without_end_and_a_part_that_is_a_pipe_are_damage(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10, 20, 30)
    (tmp_path / f"{30:012d}" / "manifest.json").write_bytes(b"[" * 100_000)
    (tmp_path / f"{20:012d}" / "state.json").unlink()
    os.mkfifo(tmp_path / f"{20:012d}" / "state.json")
    with pytest.raises(UserError, match="no checkpoint in"):
        newest(checkpoints)


def test_what_is_in_the_place_of_a_checkpoint_is_removed_without_waiting_for_it(tmp_path: Path) -> None:
    """To remove a pipe as a folder would mean to open it, and to wait until something writes to it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("mine")
    os.mkfifo(tmp_path / "run" / f"{5:012d}")
    os.mkfifo(tmp_path / "run" / ".saving-1")
    (tmp_path / "run" / f"{10:012d}").symlink_to(tmp_path / "outside")
    checkpoints = saved(tmp_path / "run", 10, 20)
    assert newest(checkpoints) == (20, [])
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [f"{10:012d}", f"{20:012d}"]
    assert (tmp_path / "outside" / "kept").read_text() == "mine"


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10)
    manifest = tmp_path / f"{10:012d}" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_bytes()) | {"format": 2}))
    with pytest.raises(UserError, match="has format 2; this version reads up to 1: upgrade"):
        newest(checkpoints)


def test_leftovers_of_a_broken_save_are_ignored_and_removed(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10)
    (tmp_path / ".saving-123").mkdir()
    (tmp_path / ".saving-123" / "agent.zip").write_bytes(b"half")
    assert newest(checkpoints) == (10, [])
    saved(tmp_path, 20)
    assert not (tmp_path / ".saving-123").exists()


@pytest.mark.parametrize("broken_write", range(4))
def test_a_full_disk_leaves_the_checkpoints_before(
    broken_write: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = saved(tmp_path, 10)
    calls = iter(range(100))
    really = os.fsync

    def fsync(handle: int) -> None:
        if next(calls) == broken_write:
            raise OSError(28, "No space left on device")
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(Checkpoint(20, PARTS))
    monkeypatch.undo()
    assert newest(checkpoints) == (10, [])
    assert [p.name for p in tmp_path.iterdir()] == [f"{10:012d}"]
