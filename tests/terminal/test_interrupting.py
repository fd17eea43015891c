"""Ctrl-C on a terminal ends the display, and one line says what was kept and how to go on."""

import re
from pathlib import Path

import pytest

from dae.cli import main
from dae.experiments.sweep.launchers import LAUNCHERS
from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, CARTPOLE
from tests.experiments.sweep.torture import Forks, cartpoles
from tests.terminals import Terminal


def test_a_run_that_is_interrupted_ends_with_one_line(tmp_path: Path) -> None:
    words = ["train", *CARTPOLE, *ALWAYS, "--frames", "10M", "--out", str(tmp_path)]
    terminal = Terminal(lambda: main(words))
    terminal.read_until(" left")
    assert "━" in terminal.shown
    assert "episodes" in terminal.shown
    terminal.press(b"\x03")
    assert terminal.wait() == 130
    folder = RunFolder(tmp_path / "CartPole-v1/dae-baseline/seed-0")
    first, last = terminal.screen()
    assert first.startswith("CartPole-v1, dae, 4 actors")
    assert last == (
        f"stopped by SIGINT; it continues at frame {folder.checkpoints.newest_frames():,} "
        f"with: dae train --resume {folder.path}"
    )


def test_a_sweep_that_is_interrupted_ends_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAUNCHERS, "local", Forks)
    terminal = Terminal(lambda: main(["sweep", *cartpoles(tmp_path, frames="10M")]))
    terminal.read_until("2 running")
    terminal.press(b"\x03")
    assert terminal.wait() == 130
    assert "CartPole-v1/gae-baseline/seed-0" in terminal.shown
    first, last = terminal.screen()
    assert first == f"2 runs in {tmp_path}, 2 at a time"
    assert re.fullmatch(
        r"stopped by SIGINT; the same command continues every run at its newest checkpoint, with [\d,]+ frames done in "
        "all",
        last,
    )
