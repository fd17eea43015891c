"""What a run says at its end: what really ran, and scores that are what they are called."""

import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from dae.envs import Family, families, register_family
from dae.experiments.training.run import train
from dae.experiments.training.summary import describe_scores
from dae.runs import Episodes, RunFolder
from tests.experiments.small import CARTPOLE, small
from tests.experiments.test_train import Faulty


def episodes(*ended: tuple[float, int]) -> Episodes:
    """Episodes by score and the frames at which they ended."""
    scores, frames = np.array(ended, float).reshape(-1, 2).T
    return Episodes(scores, np.ones(len(ended), np.int64), np.zeros(len(ended)), frames.astype(np.int64))


def test_the_score_at_first_is_of_a_part_of_the_frames() -> None:
    short_ones_first = episodes(*((0.0, frame) for frame in range(1, 101)), *((9.0, 1_000) for _ in range(100)))
    told = describe_scores(short_ones_first, 90.0, budget=10_000, trained=10_000, played=0)
    assert told == (
        "\n10,000 frames in 90 seconds, 200 episodes\n"
        "mean score in the first tenth of the frames 4.50, of the last 100 episodes 9.00, of all 4.50"
    )


def test_what_there_is_none_of_is_said() -> None:
    late = describe_scores(episodes((3.0, 900)), 6.0, budget=900, trained=1_000, played=24)
    assert late == (
        "\n1,000 frames (900, rounded up to whole iterations) of training and 24 frames of finishing episodes in "
        "6 seconds, 1 episode\n"
        "mean score in the first tenth of the frames none (no episode ended), of the last 1 episode 3.00, of all 3.00"
    )
    assert describe_scores(episodes(), 150.0, budget=1, trained=1, played=0) == (
        "\n1 frame in 2.5 minutes, 0 episodes\nno episode has ended: there is no score"
    )


def test_the_frames_are_those_that_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rollouts have 4 x 32 frames: 250 become 256, and finishing adds steps of 4 frames."""
    config = small(tmp_path, "--frames", "250", "--finishing", of=CARTPOLE)
    assert train(config) == 0
    out = capsys.readouterr().out
    told = re.search(r"\n256 frames \(250, .*\) of training and (\d+) frames of finishing episodes in", out)
    assert told is not None
    played = RunFolder(config.folder).read_episodes()
    assert played.frames[-1] == 256 + int(told[1])


class Skipping(Family):
    """Three frames of the game pass in a step."""

    name, label, prefix, frames_per_step = "skipping", "Skipping", "Skipping/", 3


def test_a_run_that_fails_counts_frames_not_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dae.envs.family._FAMILIES", families())
    register_family(Skipping())
    gym.register("Skipping/Step-v0", Faulty, kwargs={"fault": "step"}, disable_env_checker=True)
    try:
        config = small(tmp_path, "--frames", "20K", of=["Skipping/Step-v0", *CARTPOLE[1:]])
        assert train(config) == 1
    finally:
        del gym.registry["Skipping/Step-v0"]
    # Each of 4 environments fails at its 200th step: 199 x 4 steps were played before.
    assert f"training stopped after {199 * 4 * 3:,} frames: " in capsys.readouterr().err
