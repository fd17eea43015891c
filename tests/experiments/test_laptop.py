"""`dae sweep laptop`: what it compares, and how it counts minutes."""

import re
from pathlib import Path

import numpy as np
import pytest

from dae.cli import main
from dae.experiments.laptop import PAPER, QUICK, THEIRS, Curve, describe, method_of, targets
from dae.experiments.sweep.config import SweepConfig, planned_runs
from dae.runs import BINS, Digest, Episodes
from tests.report.folders import write_files

OTHERS = [
    ["--advantages", "gae"],
    ["--networks", "wide"],
    ["--preset", "quick"],
    ["--settings", "actors=4"],
    ["--grid", "frames=1K,2K"],
]


def curve(*scores: float, minutes: float = 10) -> Curve:
    return Curve(np.linspace(0, minutes, len(scores)), np.array(scores), last=scores[-1])


def test_the_suite_has_short_runs_the_papers_and_those_of_stable_baselines3() -> None:
    runs = [run.config for run in planned_runs(SweepConfig("laptop"))]
    assert len({(run.env, method_of(run), run.seed) for run in runs}) == len(runs) == 5 * (2 * 3 + 1)
    theirs = next(run for run in runs if method_of(run) == THEIRS)
    # rl-zoo's settings of PPO for Atari.
    assert (theirs.actors, theirs.steps, theirs.epochs, theirs.batch_size) == (8, 128, 4, 256)
    assert (theirs.learning_rate, theirs.clip_range, theirs.anneal, theirs.ent_coef) == (2.5e-4, 0.1, True, 0.01)
    assert (theirs.critic_coef, theirs.gae_lambda, theirs.max_grad_norm) == (0.5, 0.95, 0.5)
    short = next(run for run in runs if method_of(run) == QUICK)
    assert short.frames == theirs.frames
    paper = next(run for run in runs if method_of(run) == PAPER)
    assert (paper.frames, paper.actors) == (10_000_000, 1024)


def test_a_curve_has_the_minutes_after_which_scores_were_played() -> None:
    seconds, frames = np.array([60.0, 120.0, 600.0]), np.array([1, 10, 1000])
    made = Curve.of(Digest.of(Episodes(np.array([1.0, 3.0, 8.0]), frames, seconds, frames), 10 * BINS))
    assert made.minutes.tolist() == [2.0, 10.0]
    assert made.scores.tolist() == [2.0, 8.0]
    assert made.last == 4.0, "all three are among the final 100"
    assert [made.minutes_to(score) for score in (2, 2.1, 9)] == [2.0, 10.0, float("inf")]


def test_the_table_says_when_a_score_was_reached_and_when_it_was_not() -> None:
    quick = [curve(0, 2, 5, 7, 10), curve(0, 5, 6, 8, 10)]
    methods = {QUICK: quick, THEIRS: [curve(0, 0, 0, 0, 10), curve(0, 1, 2, 2, 2)]}
    assert targets(methods) == [5.0, 9.0]
    table = describe({"MinAtar/Breakout-v1": methods})
    assert "| Breakout | 5 | 3.8 ± 1.2 | 1 of 2 seeds not within 10 |" in table
    assert "| Breakout | 9 | 10.0 ± 0 | 1 of 2 seeds not within 10 |" in table
    assert "| Breakout | 10.0 ± 0 (10.0) | 6.0 ± 4.0 (10.0) |" in table
    close = describe({"MinAtar/Breakout-v1": {QUICK: [*quick[:1], curve(0, 2, 5, 7, 10, minutes=10.1)]}})
    assert "| 9 | 10.05 ± 0.05 |" in close, "a small error shows a digit"
    never = describe({"MinAtar/Breakout-v1": {QUICK: quick[:1], THEIRS: [curve(0, 1, minutes=30)]}})
    assert "| 9 | 10.0 | not within 30 |" in never


@pytest.mark.parametrize("scores", [(1.0, 0.5, 1.2, 1.5, 1.9), (0.0, 20.0)], ids=["learns nothing", "too few episodes"])
def test_a_game_without_a_score_to_reach_is_named(scores: tuple[float, ...]) -> None:
    table = describe({"MinAtar/Freeway-v1": {QUICK: [curve(*scores)]}})
    assert [line for line in table.split("\n") if line.startswith("| Freeway")] == [
        f"| Freeway | {scores[-1]} (10.0) |"
    ]
    assert "too few episodes end: Freeway." in table


@pytest.mark.parametrize("words", OTHERS, ids=str)
def test_what_it_compares_cannot_be_replaced(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "laptop", *words]) == 2
    assert re.search("is what the suite 'laptop' compares|the suite 'laptop' compares other", capsys.readouterr().err)


def test_the_command_writes_table_and_figure_of_its_runs_and_of_their_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "laptop", "--envs", "MinAtar/Breakout-v1", "--seeds", "1", "--out"]
    for run in planned_runs(SweepConfig("laptop", envs=("MinAtar/Breakout-v1",), seeds=1, out=tmp_path / "runs")):
        pace = run.config.frames // 60
        rows = "".join(f"{minute}.0,10,{60 * minute}.0,{pace * minute}\n" for minute in range(1, 61))
        write_files(run.folder.path, run.config.to_json(), rows, 60, "finished")
    assert main([*words, str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert "4 of 4 runs finished" in shown
    table = (tmp_path / "runs" / "laptop.md").read_text()
    assert table in shown
    assert "| Game | score | quick, DAE | quick, GAE | paper, DAE | Stable-Baselines3 |" in table
    assert "| Breakout | 30.5 | 31.0 | 31.0 | 31.0 | 31.0 |" in table
    assert (tmp_path / "runs" / "laptop.png").stat().st_size > 10_000
    assert main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "short")]) == 0
    assert main([*words, str(tmp_path / "short")]) == 0, "nothing is trained again"
    for name in ("laptop.md", "laptop.png"):
        assert (tmp_path / "short" / name).read_bytes() == (tmp_path / "runs" / name).read_bytes()
