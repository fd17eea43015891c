"""A sweep ends with every run finished exactly once, whatever dies on the way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dae.cli import main
from dae.errors import InUse
from dae.experiments.config import parse
from dae.experiments.sweep.config import planned_runs
from dae.experiments.sweep.driver import sweep
from dae.experiments.sweep.launchers import LAUNCHERS
from dae.runs import RunFolder
from tests.experiments.sweep.torture import (
    SMALL,
    Forks,
    cartpoles,
    finished,
    killed_until_done,
    outcomes,
    read,
    start_driver,
    workers,
)
from tests.processes import Fork, has_checkpoint, wait_until


@pytest.mark.parametrize(
    ("suite", "runs", "first"),
    [
        ("minatar", 5 * 2 * 2 * 50, "MinAtar-Asterix-v1/dae-baseline/seed-0"),
        ("atari", 49 * 3 * 2 * 10, "ALE-Alien-v5/dae-baseline/seed-0"),
        ("ablation", 5 * 4 * 50, "MinAtar-Asterix-v1/dae-baseline/seed-0"),
        ("smoke", 2 * 2 * 2, "MinAtar-Asterix-v1/dae-baseline/seed-0"),
    ],
)
def test_the_suites_are_the_papers(suite: str, runs: int, first: str) -> None:
    planned = planned_runs(read([suite]))
    assert len({run.name for run in planned}) == len(planned) == runs
    assert planned[0].name == first
    if suite in ("minatar", "atari"):
        assert {run.config.frames for run in planned} == {10_000_000 if suite == "minatar" else 40_000_000}
        assert {run.config.actors for run in planned} == {1024}
        assert {run.config.epochs for run in planned if run.config.advantage == "gae"} == {4}


def test_every_run_is_the_command_that_is_written_for_it(tmp_path: Path) -> None:
    words = ["smoke", "--networks", "wide", "--first-seed", "3", "--settings", "gamma=0.9", "--out", str(tmp_path)]
    for run in planned_runs(read(words)):
        assert parse(list(run.words)) == run.config
        assert (run.config.network, run.config.gamma, run.config.frames) == ("wide", 0.9, 20_000)
        assert run.config.seed in (3, 4)


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        (["--seeds", "3"], [0, 1, 2]),
        (["--seeds", "3", "--first-seed", "5"], [5, 6, 7]),
        (["--seeds", "0", "7", "3"], [0, 7, 3]),
        (["--seeds", "10-12"], [10, 11, 12]),
        (["--seeds", "1", "10-11", "4"], [1, 10, 11, 4]),
        (["--seeds", "7-7"], [7]),
        (["--seeds=2"], [0, 1]),
        ([], [0, 1]),
    ],
)
def test_one_number_is_how_many_seeds_and_several_are_which(words: list[str], seeds: list[int]) -> None:
    planned = planned_runs(read(["smoke", *words, "--advantages", "dae", "--envs", "MinAtar/Breakout-v1"]))
    assert [run.config.seed for run in planned] == seeds
    for run in planned:
        assert parse(list(run.words)) == run.config


@pytest.mark.parametrize("setting", ["minibatches=segments", "row_length=8", "correction=0.5"])
def test_what_has_no_meaning_for_an_estimator_is_refused_before_anything_runs(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "minatar", "--settings", setting, "--out", str(tmp_path / "runs"), "--dry-run"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "it has no meaning for advantage 'gae'" in told


def test_processes_train_the_runs_and_a_run_that_fails_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = cartpoles(tmp_path)
    words[1:2] = ["CartPole-v1", "Pendulum-v1"]
    assert main(["sweep", *words, "--advantages", "dae"]) == 1
    told = capsys.readouterr()
    assert finished(RunFolder(tmp_path / "CartPole-v1/dae-baseline/seed-0"))
    assert "1 of 2 runs finished" in told.out
    log = tmp_path / "Pendulum-v1/dae-baseline/seed-0/log.txt"
    assert told.err.count("\n") == 1
    assert "Pendulum-v1/dae-baseline/seed-0 failed: " in told.err
    assert "needs Discrete or MultiDiscrete" in told.err
    assert f"log: {log}" in told.err
    assert "needs Discrete or MultiDiscrete" in log.read_text()


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAUNCHERS, "local", Forks)


@pytest.mark.usefixtures("forks")
def test_random_kills_of_workers_and_driver_change_nothing(tmp_path: Path) -> None:
    plain, disturbed = (read(cartpoles(tmp_path / name, frames="2K", seeds="2")) for name in ("plain", "disturbed"))
    assert sweep(plain) == 0
    log = tmp_path / "driver.txt"
    killed = killed_until_done(lambda: Fork(lambda: sweep(disturbed), log), disturbed.out, kills=6, slowest=0.3)
    assert {"driver", "worker"} <= set(killed)
    assert outcomes(disturbed) == outcomes(plain)
    assert not workers(disturbed.out)


@pytest.mark.usefixtures("forks")
def test_the_same_command_skips_what_is_finished_and_dry_run_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = cartpoles(tmp_path, frames="600")
    assert main(["sweep", *words, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "CartPole-v1 baseline dae" in told
    assert "1 run of 600 frames: 0 finished, 0 begun" in told
    assert "measured just now" in told
    assert not list(tmp_path.iterdir())

    assert main(["sweep", *words]) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["sweep", *words]) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
    capsys.readouterr()
    assert main(["sweep", *words, "--dry-run", "True"]) == 0
    assert "1 finished, 0 begun; nothing left to do" in capsys.readouterr().out


@pytest.mark.usefixtures("forks")
def test_a_run_that_someone_else_trains_is_waited_for_and_taken_over_when_they_die(tmp_path: Path) -> None:
    config = read([*cartpoles(tmp_path, frames="600"), "--advantages", "dae"])
    folder = planned_runs(config)[0].folder

    def hold() -> int:
        with folder.locked():
            time.sleep(60)
        return 0

    holder = Fork(hold, tmp_path / "holder.txt")
    wait_until(folder.is_locked)
    driver = Fork(lambda: sweep(config), tmp_path / "driver.txt")
    time.sleep(1.0)
    assert driver.exit_code() is None
    assert not folder.exists
    holder.kill()
    assert driver.wait() == 0
    assert finished(folder)


@pytest.mark.usefixtures("forks")
def test_a_worker_that_finds_the_folder_in_use_is_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that died since had it: the folder is free when the sweep looks."""
    marker = tmp_path / "refused-once"

    def refuse_once(*_: object) -> None:
        if not marker.exists():
            marker.touch()
            raise InUse("it is in use by another process")

    monkeypatch.setattr("dae.experiments.training.run._is_finished", refuse_once)
    assert main(["sweep", *cartpoles(tmp_path / "runs", frames="600"), "--advantages", "dae"]) == 0
    assert marker.exists()
    assert "1 of 1 run finished" in capsys.readouterr().out


@pytest.mark.usefixtures("forks")
def test_a_run_that_dies_without_getting_further_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.experiments.training.run.make_model", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert main(["sweep", *cartpoles(tmp_path), "--advantages", "dae", "--retries", "1"]) == 1
    assert "died 2 times without making progress (exit code -9)" in capsys.readouterr().err


@pytest.mark.usefixtures("forks")
def test_a_signal_stops_driver_and_workers_and_loses_nothing(tmp_path: Path) -> None:
    config = read([*cartpoles(tmp_path, frames="30K"), "--advantages", "dae"])
    folder = planned_runs(config)[0].folder
    driver = Fork(lambda: sweep(config), tmp_path / "driver.txt")
    wait_until(lambda: has_checkpoint(folder))
    os.kill(driver.pid, signal.SIGTERM)
    assert driver.wait() == 143
    assert not folder.is_locked()
    assert folder.read_status().state == "stopped"
    assert "the same command continues every run at its newest checkpoint" in (tmp_path / "driver.txt").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is nothing to run: name a suite"),
        (["smoke", "--seeds", "0"], "seeds is 0: it must be an integer of at least 1"),
        (["smoke", "--settings", "frames"], "settings has 'frames': it must be NAME=VALUE"),
        (["smoke", "--settings", "seed=3"], "settings has 'seed=3'"),
        (["smoke", "--settings", "framez=3"], "'framez' is not a setting; did you mean frames?"),
        (["smoke", "--settings", "gamma=high"], "gamma"),
        (["smoke", "--networks", "deep"], "network is 'deep': it must be baseline or wide for MinAtar/Asterix-v1"),
        (["--envs", "MinAtar/Brekout-v1"], "environment 'MinAtar/Brekout-v1' is not known; did you mean"),
        (["smoke", "--settings", "pictures=maybe"], "maybe"),
        (["smoke", "--envs", "CartPole-v1", "CartPole-v1"], "it must be a list that names nothing twice"),
        (["smoke", "--gpus-per-run", "1"], "only --launcher ray can assign GPUs"),
        (["smoke", "--jobs", "-1"], "jobs is -1: it must be a number of at least 0"),
        (["smoke", "--settings", "frames="], "'' is not a whole number, such as 12345, 500K or 10M"),
        (
            ["smoke", "--seeds", "3", "4", "3"],
            "seeds is (3, 4, 3): it must be an integer of at least 1 (how many seeds)",
        ),
        (["smoke", "--seeds"], "seeds is (): it must be"),
        (["smoke", "--seeds", "1", "x"], "--seeds: 'x' is not a seed or a range"),
        (["smoke", "--seeds", "9-4"], "--seeds: '9-4' is not a seed or a range"),
        (["smoke", "--seeds", "0-4294967296"], "range of at most 100,000 seeds"),
        (["smoke", "--seeds", "4294967296-4294967297"], "seed is 4294967296: it must be in [0, 2^32)"),
        (["smoke", "--seeds", "1", "2", "--first-seed", "5"], "first_seed is 5: it has no meaning if --seeds names"),
        (["smkoe"], "suite is 'smkoe': it must be one of minatar, atari, ablation, classic, laptop, smoke"),
    ],
)
def test_a_mistake_gets_one_line_and_starts_nothing(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *words, "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert message in told
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for words in (["sweep", "smoke"], ["synthetic", "--seeds", "1", "--iterations", "1"]):
        assert main([*words, "--out", str(tmp_path / "file")]) == 2
        assert "because a file is in its place: choose another" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--dry-run"], ["--dry_run"], ["--dry-run", "true"], ["--dry-run", "True"]])
def test_a_switch_may_stand_alone(words: list[str]) -> None:
    assert read([*words, "smoke"] if len(words) == 2 else ["smoke", *words, "--jobs", "1"]).dry_run
    assert not read(["smoke", "--dry-run", "false"]).dry_run


@pytest.mark.usefixtures("forks")
def test_runs_with_other_settings_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*cartpoles(tmp_path, frames="600"), "--advantages", "dae"]
    assert main(["sweep", *words]) == 0
    assert main(["sweep", *words, "--settings", *SMALL, "frames=700"]) == 2
    assert "was made with different settings (frames is 600 there and 700 here)" in capsys.readouterr().err


@pytest.mark.slow
def test_many_kills_of_real_processes_change_nothing(tmp_path: Path) -> None:
    words = ["smoke", "--seeds", "1", "--settings", "frames=12K", "checkpoint_seconds=0.5"]
    plain, disturbed = ([*words, "--out", str(tmp_path / name)] for name in ("plain", "disturbed"))
    assert subprocess.run([sys.executable, "-m", "dae", "sweep", *plain], check=False).returncode == 0
    killed = killed_until_done(
        lambda: start_driver(disturbed, tmp_path / "driver.txt"), tmp_path / "disturbed", kills=20, slowest=12.0
    )
    assert {"driver", "worker"} <= set(killed)
    assert outcomes(read(disturbed)) == outcomes(read(plain))
