"""The folder of a run: its lock, its status, its episodes."""

import multiprocessing
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3.common.monitor import load_results

from dae.errors import UserError
from dae.runs import (
    Checkpoint,
    Episodes,
    FolderLost,
    Provenance,
    RunFolder,
    RunSettings,
    State,
    Status,
    find_runs,
    read_episodes,
)
from dae.runs.episodes import EpisodeLog
from tests.processes import wait_until


def hold(path: Path) -> None:
    with RunFolder(path).locked():
        time.sleep(60)


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(tmp_path,))
    process.start()
    folder = RunFolder(tmp_path)
    wait_until(folder.is_locked)
    folder.write_status(Status(state=State.RUNNING))
    assert folder.read_status().state is State.RUNNING
    with pytest.raises(UserError, match=rf"in use by another process \(process {process.pid}\)"), folder.locked():
        pass
    process.kill()
    process.join(60)
    assert process.exitcode == -9
    assert folder.read_status().state is State.INTERRUPTED
    with folder.locked():
        assert folder.is_locked()


def test_a_deleted_lock_is_put_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        (folder.path / "lock").unlink()
        assert not folder.is_locked()
        folder.lock.keep()
        assert folder.is_locked()
    assert not folder.is_locked()


def test_a_folder_that_another_process_has_taken_is_lost(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    with first.locked():
        (tmp_path / "lock").unlink()
        with second.locked(), pytest.raises(FolderLost, match="another process has it now"):
            first.lock.keep()


def test_a_deleted_folder_is_lost_and_not_made_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        shutil.rmtree(folder.path)
        with pytest.raises(FolderLost, match="was deleted or moved"):
            folder.lock.keep()
        with pytest.raises(FileNotFoundError):
            folder.write_status(Status())
        with pytest.raises(FileNotFoundError):
            folder.checkpoints.save(Checkpoint(1, {"a": b""}))
    assert not folder.path.exists()


@pytest.mark.parametrize("name", ["lock", "status.json", "learning_curve.png", "checkpoints", "monitor.csv"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_not_a_file_of_the_run_is_not_written_to(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "outside").write_text("mine")
    if kind == "link":
        (tmp_path / "run" / name).symlink_to(tmp_path / "outside")
    else:
        os.mkfifo(tmp_path / "run" / name)
    with pytest.raises(UserError, match=rf"{name} is "), RunFolder(tmp_path / "run").locked():
        pass
    assert (tmp_path / "outside").read_text() == "mine"


def test_lost_episodes_are_not_replaced_by_nothing(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "monitor.csv", "Some-v0", None)
    log.add(1.5, 10, 0.25, 128)
    size = log.flush()
    log.close()
    os.truncate(tmp_path / "monitor.csv", size - 5)
    with pytest.raises(UserError, match="shorter than when the newest checkpoint was taken"):
        EpisodeLog(tmp_path / "monitor.csv", "Some-v0", size)
    assert (tmp_path / "monitor.csv").stat().st_size == size - 5


def test_episodes_are_read_back_by_us_and_by_sb3(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "monitor.csv", "Some-v0", None)
    log.add(1.5, 10, 0.25, 128)
    size = log.flush()
    log.add(-2.0, 7, 0.5, 256)
    log.close()
    episodes = read_episodes(tmp_path / "monitor.csv")
    assert episodes.scores.tolist() == [1.5, -2.0]
    assert episodes.lengths.tolist() == [10, 7]
    assert episodes.frames.tolist() == [128, 256]
    assert load_results(str(tmp_path))["r"].tolist() == [1.5, -2.0]
    with (tmp_path / "monitor.csv").open("a") as file:
        file.write("3.0,4")  # a line that a kill has torn
    assert len(read_episodes(tmp_path / "monitor.csv")) == 2
    EpisodeLog(tmp_path / "monitor.csv", "Some-v0", size).close()
    assert read_episodes(tmp_path / "monitor.csv").scores.tolist() == [1.5]


def test_the_papers_scores() -> None:
    scores = np.arange(250.0)
    zeros = np.zeros(250, np.int64)
    episodes = Episodes(scores, zeros, scores, zeros)
    assert episodes.overall == 124.5
    assert episodes.last == scores[-100:].mean() == 199.5
    none = Episodes(*(np.zeros(0) for _ in range(4)))  # type: ignore[arg-type]
    assert np.isnan(none.overall)
    assert np.isnan(none.last)


@pytest.mark.parametrize(
    "content", ['{"schema": 1, "settings": 3}', '{"schema": 1}', "", "[]", "{}", '{"schema": "x"', "\x80\x04"]
)
def test_a_config_that_is_none_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match="is not the config of a run"):
        RunFolder(tmp_path).read_config()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"schema": 99}')
    with pytest.raises(UserError, match="newer version"):
        RunFolder(tmp_path).read_config()
    with pytest.raises(UserError, match=r"no config.json"):
        RunFolder(tmp_path / "none").read_config()


def test_status_and_settings_are_records(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read_status() == Status(state=State.INTERRUPTED), "a run that never said anything"
    status = Status(State.FAILED, frames=128, total_frames=256, episodes=3, score=1.5, error="it broke")
    folder.write_status(status)
    assert replace(folder.read_status(), updated=0.0) == status
    settings = RunSettings(env="CartPole-v1", advantage="gae", seed=3, learning_rate=1e-3)
    made_with = Provenance({"torch": "2"}, "abc", uncommitted_changes=True, threads=2)
    folder.write_config(settings, made_with)
    assert folder.read_config() == (settings, made_with)


def test_settings_of_an_older_version_have_the_defaults_of_what_came_later(tmp_path: Path) -> None:
    settings = RunSettings(env="CartPole-v1").to_json()
    del settings["bootstrap_truncations"]
    assert RunSettings.from_json(settings, tmp_path) == RunSettings(env="CartPole-v1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": "many"}, r"config.json: frames is 'many': it must be an integer in \[1, 2\^53\)"),
        ({"seed": True}, r"seed is True: it must be in \[0, 2\^32\)"),
        ({"gamma": None}, r"gamma is None: it must be in \[0, 1\]"),
        ({"network": 3}, "network is 3: it must be str, got int"),
        ({"frames": 0}, "frames is 0: it must be an integer in \\[1, 2\\^53\\)"),
        ({"framse": 3}, r"'framse' is not a setting; did you mean frames\?"),
    ],
)
def test_settings_of_another_type_are_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        RunSettings.from_json(RunSettings(env="CartPole-v1").to_json() | change, tmp_path / "config.json")


@pytest.mark.parametrize("value", ["x" * 10**6, [10**6 * "x"], dict.fromkeys(map(str, range(10**5)))], ids=type)
def test_a_long_value_is_refused_in_a_line_that_can_be_read(value: object, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"frames is .*: it must be an integer") as refused:
        RunSettings.from_json({"env": "CartPole-v1", "frames": value}, tmp_path / "config.json")
    assert len(str(refused.value)) < 1_500


def test_a_deep_value_is_refused_like_others(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(UserError, match=r"frames is \[\[.*: it must be an integer"):
        RunSettings.from_json({"env": "CartPole-v1", "frames": deep}, tmp_path / "config.json")


def test_there_is_one_finder_of_runs(tmp_path: Path) -> None:
    for name in ("b/run", "a/run", "a/run/checkpoints/000", "c"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("b/run/config.json", "a/run/monitor.csv", "a/run/checkpoints/000/config.json"):
        (tmp_path / name).touch()
    found = [folder.path for folder in find_runs([tmp_path, tmp_path / "a"])]
    assert found == [tmp_path / "a" / "run", tmp_path / "b" / "run"]
    with pytest.raises(UserError, match="there is no folder"):
        find_runs([tmp_path / "none"])
