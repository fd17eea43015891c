"""`dae sweep classic`: what it compares, and how it counts."""

from pathlib import Path

import numpy as np
import pytest

from dae.cli import main
from dae.experiments.classic import BINS, OURS, THEIRS, Comparison, describe, learning_curve, method_of, summarise
from dae.experiments.sweep.config import CLASSIC, SweepConfig, planned_runs
from dae.runs import Episodes, Provenance, RunFolder, RunSettings
from dae.runs.episodes import EpisodeLog


def episodes(frames: list[int], scores: list[float]) -> Episodes:
    return Episodes(np.array(scores), np.ones(len(scores), int), np.zeros(len(scores)), np.array(frames))


def test_the_suite_is_every_method_on_every_task_three_times() -> None:
    runs = [run.config for run in planned_runs(SweepConfig("classic"))]
    tasks = {(env, actors) for env, sizes in CLASSIC.items() for actors in sizes}
    assert len(tasks) == 12
    combinations = {(run.env, run.actors, method_of(run), run.seed) for run in runs}
    assert len(combinations) == len(runs) == len(tasks) * 4 * 3
    assert {run.folder for run in planned_runs(SweepConfig("classic"))}.__len__() == len(runs)
    ours = next(run for run in runs if method_of(run) == OURS)
    assert (ours.correction, ours.steps, ours.batch_size, ours.learning_rate, ours.anneal) == (
        1.0,
        2048,
        64,
        3e-4,
        False,
    )
    theirs = next(run for run in runs if method_of(run) == THEIRS)
    assert (theirs.implementation, theirs.critic_coef, theirs.max_grad_norm) == ("sb3", 0.5, 0.5)


def test_a_curve_is_the_mean_of_what_ended_in_each_part() -> None:
    curve = learning_curve(episodes([1, 5, 6, 95, 100], [1, 3, 10, 7, 9]), 100)
    assert curve[:3].tolist() == [2, 10, 10], "the mean, then the next part, and what has no episode is as before"
    assert curve[-2:].tolist() == [7, 9]
    assert len(curve) == BINS
    late = learning_curve(episodes([60], [5.0]), 100)
    assert (late == 5).all(), "before the first episode there is nothing better to say"


def comparison(ours: list[list[float]], theirs: list[list[float]]) -> Comparison:
    def curves(rows: list[list[float]]) -> np.ndarray:
        return np.array([np.interp(np.arange(BINS), [0, BINS - 1], row) for row in rows])

    task = ("Env-v0", 1)
    return Comparison({task: {OURS: curves(ours), THEIRS: curves(theirs)}}, {task: 1000})


def test_areas_are_normalised_by_the_untrained_and_the_best() -> None:
    result = comparison([[0, 100], [0, 100]], [[0, 50], [0, 50]])
    task = result.tasks[0]
    final = np.interp([BINS - 2, BINS - 1], [0, BINS - 1], [0, 100]).mean()
    assert result.final(task, OURS).value == pytest.approx(final)
    assert result.area(task, OURS).value == pytest.approx(50)
    assert result.mean_normalised_area(OURS).value == pytest.approx(50 / final)
    assert result.mean_normalised_area(THEIRS).value == pytest.approx(25 / final)
    nobody = comparison([[-200, -200]], [[-200, -200]])
    assert nobody.normalised_area(nobody.tasks[0], OURS) is None
    assert "| **mean, normalised** | – | – |" in describe(nobody)


@pytest.mark.parametrize(("ours", "behind"), [(100.0, False), (96.0, False), (80.0, True)])
def test_a_task_is_behind_if_the_gap_is_larger_than_its_standard_error(ours: float, behind: bool) -> None:
    result = comparison([[0, ours - 5], [0, ours + 5]], [[0, 95], [0, 105]])
    assert result.behind() == ([("Env-v0", 1)] if behind else [])
    assert ("Env-v0 (1)" in describe(result)) == behind
    assert "too few to say" in describe(comparison([[0, 1]], [[0, 2]]))


def test_a_task_without_episodes_is_left_out_by_name(tmp_path: Path) -> None:
    folders = []
    for env, frames in (("Ends-v0", 10), ("Never-v0", None)):
        for method, settings in ((OURS, {"correction": 1.0}), (THEIRS, {"advantage": "gae", "implementation": "sb3"})):
            for seed in (0, 1):
                folder = RunFolder(tmp_path / env / method / str(seed))
                folder.make()
                folder.write_config(RunSettings(env, frames=100, actors=1, seed=seed, **settings), Provenance())
                log = EpisodeLog(folder.monitor, env, None)
                if frames:
                    log.add(1.0, 1, 0.0, frames)
                log.close()
                folders.append(folder)
    told = summarise(tmp_path, folders)
    assert "Left out, because no episode ended: Never-v0 (1)." in told
    assert "Ends-v0, 1, 100 |" in told
    assert "nothing is compared" in summarise(tmp_path, [f for f in folders if "Never" in str(f.path)])


@pytest.mark.parametrize("words", [["--advantages", "gae"], ["--preset", "quick"], ["--settings", "actors=4"]], ids=str)
def test_what_it_compares_cannot_be_replaced(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "classic", *words]) == 2
    assert "is what the suite 'classic' compares" in capsys.readouterr().err


def test_the_command_trains_all_methods_and_writes_table_and_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["frames=1K", "steps=64", "epochs=1"]
    words = ["sweep", "classic", "--envs", "CartPole-v1", "--seeds", "1", "--out", str(tmp_path), "--settings", *small]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "8 of 8 runs finished" in shown
    table = (tmp_path / "classic.md").read_text()
    assert table in shown
    for text in (
        "dae.PPO (default)",
        "Stable-Baselines3",
        "CartPole-v1, 1, 1K",
        "CartPole-v1, 8, 1K",
        "mean, normalised",
    ):
        assert text in table
    assert (tmp_path / "classic.png").stat().st_size > 10_000
    assert main(words) == 0, "again: nothing to train, the same table"
    assert (tmp_path / "classic.md").read_text() == table
