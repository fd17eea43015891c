"""Nobody has to read the output: closed pipes and terminals stop nothing, and any locale will do."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, CARTPOLE, small
from tests.processes import has_checkpoint, wait_until
from tests.report.folders import write_run

COMMAND = [sys.executable, "-m", "dae"]
# A terminal of the last century; Python would otherwise take it for one of today.
LATIN_1 = os.environ | {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}


@pytest.mark.parametrize("words", [["-h"], ["train", "CartPole-v1", "--help"], ["theory"]], ids=" ".join)
def test_a_reader_that_leaves_early_is_no_error(words: list[str]) -> None:
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_output_that_was_never_open_is_no_error(tmp_path: Path) -> None:
    write_run(tmp_path)
    closed = f"'{sys.executable}' -m dae runs '{tmp_path}' >&-"
    told = subprocess.run(["bash", "-c", closed], capture_output=True, check=False)
    assert (told.returncode, told.stderr) == (0, b"")


def test_a_closed_pipe_does_not_stop_training(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "2K", of=CARTPOLE)
    words = [*CARTPOLE, *ALWAYS, "--frames", "2K", "--out", str(tmp_path)]
    process = subprocess.Popen([*COMMAND, "train", *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"CartPole-v1, dae")
    process.stdout.close()
    assert process.wait(120) == 0
    assert RunFolder(config.folder).read_status().state == "finished"


def test_a_closed_terminal_does_not_stop_training(tmp_path: Path) -> None:
    """Its session gets SIGHUP, and what it writes to the terminal is an error from then on."""
    folder = RunFolder(small(tmp_path, "--frames", "4K", of=CARTPOLE).folder)
    words = [*CARTPOLE, *ALWAYS, "--frames", "4K", "--out", str(tmp_path)]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*COMMAND, "train", *words])
    wait_until(lambda: has_checkpoint(folder), 120)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert folder.read_status().state == "finished"


def test_help_and_pages_are_utf_8_in_any_locale(tmp_path: Path) -> None:
    told = subprocess.run([*COMMAND, "train", "CartPole-v1", "--help"], env=LATIN_1, capture_output=True, check=True)
    assert "GAE's λ" in told.stdout.decode("utf-8")
    write_run(tmp_path / "runs")
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "report")]
    told = subprocess.run([*COMMAND, *words], env=LATIN_1, capture_output=True, check=True)
    assert told.stderr == b""
    assert "±" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
