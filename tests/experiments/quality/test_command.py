"""`dae quality`: which runs it measures, what it writes and prints, and what it refuses."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dae
from dae.cli import main
from dae.experiments.training.run import train
from tests.experiments.small import CARTPOLE, small

FEW = ["--states", "4", "--rollouts", "10", "--horizon", "20", "--steps", "500", "--probes", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small(tmp_path_factory.mktemp("trained"), "--frames", "300", of=CARTPOLE)
    assert train(config) == 0
    return config.folder


@pytest.fixture(scope="module")
def measured(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all runs in a folder, of which there is one."""
    out = tmp_path_factory.mktemp("results")
    assert main(["quality", str(trained.parent), *FEW, "--out", str(out)]) == 0
    return out


def test_all_numbers_are_written(measured: Path, trained: Path) -> None:
    written = json.loads((measured / "quality.json").read_text())
    assert written["settings"]["env"] == "CartPole-v1"
    assert list(written["critics"])[:5] == ["own", "dae", "gae", "duel", "indirect"]
    run = dae.load_run(trained)
    env = run.make_env(run.config.family.simulated_at_once)
    found = dae.measure_quality(run.model, env, states=4, rollouts=10, horizon=20, steps=500, probes=2)
    for name, critic in written["critics"].items():
        for measure, number in critic.items():
            expected = getattr(found[name].quality, measure)
            assert [number["value"], number["error"]] == pytest.approx(
                [None if np.isnan(x) else x for x in (expected.value, expected.error)]
            )
    with np.load(measured / "quality.npz") as samples:
        np.testing.assert_allclose(samples["returns"], found.truth.returns, rtol=1e-6)
        np.testing.assert_allclose(samples["estimates_gae"], found["gae"].estimates, rtol=1e-5)


def test_what_is_printed_is_kept_and_fits_a_terminal(measured: Path) -> None:
    summary = (measured / "summary.txt").read_text()
    assert summary.startswith("CartPole-v1, DAE, 384 frames of training\nTruth: 4 states x 2 actions x 10 rollouts")
    assert max(map(len, summary.splitlines())) <= 120
    for name in ("quality", "scatter"):
        assert (measured / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_again_it_gives_the_same_and_other_settings_are_refused(
    measured: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (measured / "quality.json").read_bytes()
    capsys.readouterr()
    assert main(["quality", str(trained), *FEW, "--seed", "1", "--out", str(measured)]) == 2
    assert "seed is 0 there and 1 here" in capsys.readouterr().err
    assert main(["quality", str(trained), *FEW, "--out", str(measured)]) == 0
    assert (measured / "quality.json").read_bytes() == before


def test_results_lie_in_the_run_s_folder_by_default(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    assert main(["quality", str(tmp_path / "run"), *FEW, "--estimators", "gae"]) == 0
    written = json.loads((tmp_path / "run" / "quality" / "quality.json").read_text())
    assert list(written["critics"]) == ["own", "gae"]


def test_each_run_has_its_own_folder_and_agents_are_not_mistaken(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = small(tmp_path / "runs", "--frames", "300", "--tag", "b", "--seed", "1", of=CARTPOLE)
    assert train(other) == 0
    shutil.copytree(trained, other.folder.parent.with_name("dae-baseline-a") / "seed-1")  # as if trained with a tag
    few = [*FEW, "--estimators", "gae", "--out", str(tmp_path / "out")]
    assert main(["quality", str(tmp_path / "runs"), *few]) == 0
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("quality.json")}
    assert written == {f"dae-baseline-{tag}/seed-1/quality.json" for tag in "ab"}
    capsys.readouterr()
    assert main(["quality", str(trained), *few[:-1], str(tmp_path / "out" / "dae-baseline-b" / "seed-1")]) == 2
    assert "weights is " in capsys.readouterr().err


def test_mistakes_are_told_in_one_line(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    normalised = small(tmp_path, "--frames", "200", "--normalize-rewards", "yes", of=CARTPOLE)
    assert train(normalised) == 0
    continuous = small(tmp_path, "--frames", "200", "--advantage", "gae", of=["Pendulum-v1", *CARTPOLE[1:]])
    assert train(continuous) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "quality.json").write_text("{}")
    capsys.readouterr()
    for words, said in (
        ([], "dae quality needs one more word: the folder of a run"),
        ([str(tmp_path / "other")], f"there is no run in {tmp_path / 'other'}"),
        ([str(normalised.folder)], "was trained with normalised rewards"),
        ([str(continuous.folder)], "to try all of them they must be Discrete"),
        ([str(trained), "--estimators", "gea"], "'gea' is not known; choose one of"),
        ([str(trained), "--rollouts", "9"], "rollouts is 9: it must be an integer of at least 10"),
    ):
        assert main(["quality", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    shutil.copytree(trained, tmp_path / "run")
    shutil.copytree(tmp_path / "other", tmp_path / "run" / "quality")
    assert main(["quality", str(tmp_path / "run")]) == 2
    assert "quality.json is not what dae quality writes" in capsys.readouterr().err
