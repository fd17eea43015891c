"""`dae play`: which run it plays, and what it says meanwhile and at the end."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from dae.cli import main
from dae.experiments.training.run import train
from dae.terminal.progress import Pace, WorkProgress
from tests.experiments.small import CARTPOLE, small


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small(tmp_path_factory.mktemp("trained"), "--frames", "300", of=CARTPOLE)
    assert train(config) == 0
    return config.folder


def play(folder: Path, *words: str) -> int:
    return main(["play", str(folder), "--episodes", "3", "--film", "none", *words])


def test_a_folder_with_many_runs_is_listed(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        shutil.copytree(trained, tmp_path / "runs" / name)
    assert play(tmp_path / "runs") == 2
    said = capsys.readouterr()
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["a", "finished"], ["b", "finished"]]
    assert said.err == (
        f"dae: {tmp_path / 'runs'} holds 2 runs: name one of them, such as dae play {tmp_path / 'runs' / 'a'}\n"
    )


def test_the_only_run_in_a_folder_is_played(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "runs" / "deep" / "a"
    shutil.copytree(trained, run)
    assert play(tmp_path / "runs", "--film", "gif") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"the only run in {tmp_path / 'runs'}: {run}\nCartPole-v1, ")
    (film,) = (run / "play").iterdir()
    assert re.search(rf"^an episode \(\d+ steps, score \d+; the film shows all, .*\): {film}$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "there is no run at {}: it has no config.json"), ("none", "there is no folder {}; name the folder that")],
)
def test_a_folder_without_a_run_is_told(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(tmp_path / name) == 2
    assert capsys.readouterr().err.startswith(f"dae: {message.format(tmp_path / name)}")


def test_frames_and_episodes_are_counted_as_what_they_are(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(trained, "--episodes", "1", "--greedy") == 0
    monkeypatch.setattr("dae.envs.Family.frames_per_step", 4)
    assert play(trained) == 0
    one, many = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"CartPole-v1, 384 frames of training, 1 greedy episode: score [\d.]+, length \d+ steps", one)
    assert re.match(r"CartPole-v1, 1,536 frames of training, 3 stochastic episodes: score [\d.]+ ± ", many)


def test_progress_is_shown_while_episodes_are_played(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[int, str, list[tuple[str, str]], Pace]] = []
    rates: list[float] = []

    def update(self: WorkProgress, *told: Any) -> None:
        shown.append(told)
        rates.append(told[3].rate)

    monkeypatch.setattr(WorkProgress, "update", update)
    assert play(trained, "--episodes", "70") == 0  # of 64 environments
    done = [episodes for episodes, *_ in shown]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] > 35
    assert shown[0][1:3] == ("playing", [("0 steps", "0 steps")])
    assert shown[1][1:3] == ("playing", [("64 steps", "64 steps")])
    # The first to end are short: they say nothing of the time that is left.
    assert not any(rate for episodes, rate in zip(done, rates, strict=True) if episodes < 70 / 4)
    assert rates[-1] > 0


def test_episodes_that_do_not_end_are_given_up(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    monkeypatch.setattr("dae.experiments.play.run._MOST_STEPS", 5)
    assert play(trained) == 2
    assert "have not ended after 5 steps: ask for fewer --episodes" in capsys.readouterr().err
