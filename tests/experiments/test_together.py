"""`torchrun -m dae train`: one run by several processes, written once, stopped and resumed exactly."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.experiments.training.run import train
from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, BREAKOUT, outcome, small
from tests.processes import Fork, has_checkpoint, kill_with_descendants, wait_until

PROCESSES = ["--nproc-per-node=2", "--standalone", "-m", "dae", "train"]


def start(out: Path, *words: str) -> "subprocess.Popen[str]":
    command = [Path(sys.executable).with_name("torchrun"), *PROCESSES, *BREAKOUT, *ALWAYS, "--out", out, *words]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(process: "subprocess.Popen[str]") -> str:
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0, told
    return told


class Pair:
    """Two processes that train together, as torchrun would start them, but forked: they need not import everything."""

    def __init__(self, config: TrainConfig, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}

        def process(rank: int) -> int:
            os.environ.update(group | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
            return train(config)

        self.processes = [Fork(partial(process, rank), log) for rank in range(2)]

    def wait(self) -> list[int]:
        return [process.wait() for process in self.processes]


def test_two_processes_make_one_run_that_resumes_exactly(tmp_path: Path) -> None:
    words = ["--frames", "3K", "--finishing", "True"]
    plain, stopped = (small(tmp_path / name, *words) for name in ("plain", "stopped"))
    assert Pair(plain, tmp_path / "plain.txt").wait() == [0, 0]
    told = (tmp_path / "plain.txt").read_text()
    assert told.count("2 processes of 1 thread,") == told.count("mean score in the first") == 1
    folder = RunFolder(plain.folder)
    assert folder.read_status().state == "finished"
    assert sum(int(length) for _, length, _ in outcome(folder)[1]) >= 3000

    pair = Pair(stopped, tmp_path / "stopped.txt")
    stopped_folder = RunFolder(stopped.folder)
    wait_until(lambda: has_checkpoint(stopped_folder))
    os.kill(pair.processes[1].pid, signal.SIGTERM)  # one of them is enough
    assert pair.wait() == [143, 143]
    assert (tmp_path / "stopped.txt").read_text().count("stopped by SIGTERM; it continues at frame ") == 1
    assert stopped_folder.read_status().state == "stopped"
    with pytest.raises(UserError, match="was trained by 2 process"):
        train(stopped)
    assert Pair(stopped, tmp_path / "resumed.txt").wait() == [0, 0]
    assert outcome(stopped_folder) == outcome(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--actors", "7"], "actors is 7: it must be a multiple of the 2 processes"),
        (
            ["--batch-size", "16"],
            "batch_size is 16: for advantage 'dae' and 2 processes it must hold a multiple of 2 rows",
        ),
        (["--batch-size", "48"], "it must hold a multiple of 2 rows of 16 steps, such as 32"),
    ],
)
def test_what_cannot_be_shared_is_refused_once_by_all(words: list[str], message: str, tmp_path: Path) -> None:
    pair = Pair(small(tmp_path / "runs", *words), tmp_path / "log.txt")
    assert pair.wait() == [70, 2]  # the first raises, which the command line turns into a line and exit code 2
    told = (tmp_path / "log.txt").read_text()
    assert told.count(message) == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_torchrun_stops_and_resumes_exactly(tmp_path: Path) -> None:
    words = ["--frames", "5K"]
    finish(start(tmp_path / "plain", *words))
    plain, stopped = (RunFolder(small(tmp_path / name, *words).folder) for name in ("plain", "stopped"))
    process = start(tmp_path / "stopped", *words)
    wait_until(lambda: has_checkpoint(stopped))
    os.kill(process.pid, signal.SIGTERM)  # torchrun passes it on
    told, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert told.count("stopped by SIGTERM; it continues at frame ") == 1
    finish(start(tmp_path / "stopped", *words))
    assert outcome(stopped) == outcome(plain)


@pytest.mark.slow
def test_kills_of_all_processes_change_nothing(tmp_path: Path) -> None:
    words = ["--frames", "8K"]
    finish(start(tmp_path / "plain", *words))
    plain, killed = (RunFolder(small(tmp_path / name, *words).folder) for name in ("plain", "killed"))
    for _ in range(4):
        before = killed.checkpoints.newest_frames()
        process = start(tmp_path / "killed", *words)
        wait_until(lambda before=before: killed.checkpoints.newest_frames() > before)
        kill_with_descendants(process.pid)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    finish(start(tmp_path / "killed", *words))
    assert outcome(killed) == outcome(plain)
