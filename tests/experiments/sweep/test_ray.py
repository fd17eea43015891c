"""A sweep on a Ray cluster ends with every run finished exactly once, whatever dies on the way."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dae.experiments.sweep.config import planned_runs
from dae.runs import RunFolder
from tests.experiments.small import Outcome
from tests.experiments.sweep.cluster import TwoNodes
from tests.experiments.sweep.torture import cartpoles, finished, outcomes, owner, read, start_driver
from tests.processes import has_checkpoint, parents, users_of, wait_until

pytestmark = pytest.mark.slow
FRAMES = 12_000
SECONDS_TO_START = 180
SECONDS_TO_STOP = 90  # less than a sweep waits for runs that do not react


def four_runs(out: Path) -> list[str]:
    return cartpoles(out, frames=str(FRAMES), seeds="2")


def on_ray(out: Path) -> list[str]:
    return [*four_runs(out), "--launcher", "ray"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """How the runs end if nothing happens to them."""
    words = four_runs(tmp_path_factory.mktemp("undisturbed"))
    assert subprocess.run([sys.executable, "-m", "dae", "sweep", *words], check=False).returncode == 0
    return outcomes(read(words))


@pytest.fixture(autouse=True)
def nothing_of_ray_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray keeps its files in a folder of each test's own (with a short path: there are sockets in it)."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield
        try:
            wait_until(lambda: not users_of(folder), 120)
        finally:
            for pid in users_of(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def in_progress(words: list[str]) -> dict[int, RunFolder]:
    """The runs that have a checkpoint and are not about to end; by the process that trains them."""
    found = {}
    for run in planned_runs(read(words)):
        pid = owner(run.folder)
        if pid is not None and 0 < run.folder.checkpoints.newest_frames() <= 0.75 * FRAMES:
            found[pid] = run.folder
    return found


def test_the_death_of_workers_changes_nothing(tmp_path: Path, undisturbed: dict[str, Outcome]) -> None:
    words = on_ray(tmp_path / "runs")
    killed: list[Path] = []

    def victims() -> list[tuple[int, RunFolder]]:
        return [(pid, folder) for pid, folder in in_progress(words).items() if folder.path not in killed]

    driver = start_driver(words, tmp_path / "driver.txt")
    for _ in range(3):
        wait_until(lambda: bool(victims()), SECONDS_TO_START)
        pid, folder = victims()[0]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid, folder=folder: owner(folder) != pid)
        assert not finished(folder)
        killed.append(folder.path)
    assert driver.wait(300) == 0
    assert outcomes(read(words)) == undisturbed


def test_the_death_of_a_node_and_then_of_the_driver_changes_nothing(
    tmp_path: Path, undisturbed: dict[str, Outcome]
) -> None:
    def by_node() -> dict[int | None, RunFolder]:
        """A run in progress of each node."""
        node_of = parents()
        return {node_of.get(pid): folder for pid, folder in in_progress(words).items()}

    with TwoNodes() as cluster:
        first, second = cluster.raylets
        words = [*on_ray(tmp_path / "runs"), "--ray-address", cluster.address]
        driver = start_driver(words, tmp_path / "driver.txt")
        wait_until(lambda: by_node().keys() >= {first, second}, SECONDS_TO_START)
        folder = by_node()[second]
        cluster.kill_second()
        wait_until(lambda: not folder.is_locked())
        assert not finished(folder)

        # The sweep is told of it, after some time, and the other node goes on with the run.
        frames = folder.checkpoints.newest_frames()
        wait_until(lambda: folder.checkpoints.newest_frames() > frames, SECONDS_TO_START)
        assert parents().get(owner(folder) or 0) == first
        driver.kill()
        assert not finished(folder)

        assert start_driver(words, tmp_path / "driver.txt").wait(300) == 0
    assert outcomes(read(words)) == undisturbed
    ends = [run.folder.log.read_text().count("mean score in the first tenth") for run in planned_runs(read(words))]
    assert max(ends) == 1, "a run was finished twice"


def test_a_signal_stops_driver_and_workers_and_loses_nothing(tmp_path: Path, undisturbed: dict[str, Outcome]) -> None:
    words, log = on_ray(tmp_path / "runs"), tmp_path / "driver.txt"
    driver = start_driver(words, log)
    wait_until(lambda: len(in_progress(words)) == 2, SECONDS_TO_START)
    folders = list(in_progress(words).values())
    os.kill(driver.pid, signal.SIGTERM)
    assert driver.wait(SECONDS_TO_STOP) == 143
    for folder in folders:
        assert has_checkpoint(folder)
        assert folder.read_status().state == "stopped"
    assert not any(run.folder.is_locked() for run in planned_runs(read(words)))
    assert "the same command continues every run at its newest checkpoint" in log.read_text()

    assert start_driver(words, log).wait(300) == 0
    assert outcomes(read(words)) == undisturbed


def test_a_signal_reaches_workers_that_are_still_starting(tmp_path: Path) -> None:
    """They notice nothing until they train if Ctrl-C is ignored, as in all that a script runs in the background."""
    words, log = on_ray(tmp_path / "runs"), tmp_path / "driver.txt"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        driver = start_driver(words, log)
    finally:
        signal.signal(signal.SIGINT, before)
    wait_until(lambda: log.exists() and "runs in" in log.read_text(), SECONDS_TO_START)
    time.sleep(1)  # until Ray has given the runs to workers, which take longer than that to start
    os.kill(driver.pid, signal.SIGTERM)
    assert driver.wait(SECONDS_TO_STOP) == 143
    for run in planned_runs(read(words)):
        assert not run.folder.is_locked()
        assert not finished(run.folder)


def test_a_signal_while_ray_starts_ends_the_sweep(tmp_path: Path) -> None:
    driver = start_driver(on_ray(tmp_path / "runs"), tmp_path / "driver.txt")
    wait_until(lambda: any(Path(os.environ["TMPDIR"]).glob("*/session_*/logs/raylet.out")), SECONDS_TO_START)
    os.kill(driver.pid, signal.SIGTERM)
    assert driver.wait(SECONDS_TO_STOP) == 143
    assert not (tmp_path / "driver.txt").read_text()
    assert not (tmp_path / "runs").exists()
