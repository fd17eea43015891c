"""`dae sweep --grid`, and tags that keep runs with different settings apart."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dae.cli import main
from dae.experiments.sweep import driver
from dae.experiments.sweep.config import SweepConfig, planned_runs
from dae.runs import find_runs
from tests.experiments.forks import Forks
from tests.experiments.small import ALWAYS, CARTPOLE

SMALL = ["frames=256", "actors=4", "steps=32", "batch_size=64"]


def test_every_combination_has_a_folder_and_a_line_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(driver.LAUNCHERS, "local", Forks)
    words = ["--envs", "CartPole-v1", "--advantages", "dae", "--preset", "quick", "--settings", *SMALL, "--seeds", "2"]
    grid = ["--grid", "learning_rate=1e-4,3e-4", "epochs=1,2"]
    assert main(["sweep", *words, *grid, "--out", str(tmp_path)]) == 0
    folders = find_runs([tmp_path])
    settings = [folder.read_config().settings for folder in folders]
    found = {(each.learning_rate, each.epochs, each.seed) for each in settings}
    assert found == {(rate, epochs, seed) for rate in (1e-4, 3e-4) for epochs in (1, 2) for seed in (0, 1)}
    cell = tmp_path / "CartPole-v1" / "dae-baseline-learning_rate=1e-4,epochs=2"
    assert sorted(path.name for path in cell.iterdir()) == ["seed-0", "seed-1"]
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| CartPole-v1")]
    assert len(rows) == 4
    means = [float(row[4].split("±")[0]) for row in rows]
    assert means == sorted(means, reverse=True)
    expected = np.mean([folder.read_episodes().last for folder in find_runs([cell])])
    (row,) = [row for row in rows if "learning_rate=1e-4, epochs=2" in row[3]]
    assert float(row[4].split("±")[0]) == pytest.approx(expected, abs=0.06)
    assert (tmp_path / "grid.md").read_text().splitlines() == [line for line in lines if line.startswith("|")]


def test_a_grid_multiplies_a_suite() -> None:
    config = SweepConfig("smoke", grid=("gamma=0.9,0.99",), seeds=1, settings=("tag=mine",))
    assert {run.config.tag for run in planned_runs(config)} == {"mine,gamma=0.9", "mine,gamma=0.99"}
    assert len(planned_runs(config)) == 2 * len(planned_runs(SweepConfig("smoke", seeds=1)))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["gama=1,2"], "'gama' is not a setting; did you mean gamma?"),
        (["gamma"], "it must be NAME=A,B,C"),
        (["gamma=0.9,,0.99"], "it must be NAME=A,B,C with different values"),
        (["gamma=0.9", "gamma=0.99"], "each NAME once"),
        (["env_kwargs=a:b,a;b"], "its values must differ in letters, digits"),
    ],
)
def test_mistakes_are_one_line(
    grid: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "--envs", "CartPole-v1", "--out", str(tmp_path / "runs"), "--grid", *grid]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_module_registers_its_family_before_presets_are_looked_up() -> None:
    code = (
        "from dae.experiments.sweep.config import SweepConfig, planned_runs;"
        "envs = ('CartPole-v1', 'tests.extending.toy_family:Toy/Walk-v0');"
        "runs = planned_runs(SweepConfig(envs=envs, advantages=('dae',)));"
        "assert [run.config.frames for run in runs] == [1_000_000, 8_000]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_the_same_with_hyphens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "classic", "--settings", "critic-coef=1"]) == 2
    assert "critic_coef is what the suite 'classic' compares" in capsys.readouterr().err


def test_a_tag_keeps_two_learning_rates_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", *CARTPOLE, *ALWAYS, "--frames", "256", "--out", str(tmp_path)]
    assert main([*words, "--learning-rate", "1e-3"]) == 0
    assert main([*words, "--learning-rate", "1e-4"]) == 2
    assert "learning_rate is 0.001 there and 0.0001 here" in capsys.readouterr().err
    assert main([*words, "--learning-rate", "1e-4", "--tag", "slow"]) == 0
    rates = {folder.path.parent.name: folder.read_config().settings.learning_rate for folder in find_runs([tmp_path])}
    assert rates == {"dae-baseline": 1e-3, "dae-baseline-slow": 1e-4}
