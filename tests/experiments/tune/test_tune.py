"""`dae tune`: what it finds is what its runs scored, whatever interrupts it."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.trial import TrialState

from dae.cli import main
from dae.errors import InvalidValue, UserError
from dae.experiments.config import parse
from dae.experiments.sweep.planned import PlannedRun
from dae.experiments.tune import run as tuning
from dae.experiments.tune.config import TuneConfig
from dae.experiments.tune.space import parse_space
from dae.experiments.tune.study import open_study
from dae.experiments.tune.summary import _toml_value
from dae.runs import RunFolder, State, find_runs
from tests.experiments.forks import Forks
from tests.processes import Fork, kill_with_descendants, wait_until

SETTINGS = ("frames=800", "actors=4", "steps=32", "batch_size=64", "checkpoint_seconds=0")


@pytest.fixture(autouse=True)
def _train_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tuning.LAUNCHERS, "local", Forks)


def search(out: Path, **options: Any) -> TuneConfig:
    usual: dict[str, Any] = {"settings": SETTINGS, "space": ("learning_rate=log:1e-4..1e-2", "epochs=1..3")}
    usual |= {"trials": 4, "startup_trials": 4}
    config = TuneConfig(env="CartPole-v1", out=out, **usual | options)
    config.require_consistent()
    return config


def test_the_best_settings_are_those_of_the_best_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = search(tmp_path)
    assert tuning.tune(config) == 0
    folders = find_runs([config.folder])
    assert len(folders) == 4
    scores = {folder.path: float(np.mean(folder.read_episodes().scores[-100:])) for folder in folders}
    best = RunFolder(max(scores, key=lambda path: scores[path]))
    repeated = parse(["--config", str(config.folder / "best.toml")])
    assert repeated.to_json() == best.read_config().settings.to_json()
    out = capsys.readouterr().out
    assert "4 trials: 4 finished, 0 given up, 0 failed" in out
    assert f"next: dae train --config {config.folder / 'best.toml'}" in out
    assert (config.folder / "search.png").stat().st_size > 10_000
    different = {folder.read_config().settings.learning_rate for folder in folders}
    assert len(different) == 4
    assert all(1e-4 <= rate <= 1e-2 for rate in different)
    # More trials go on searching, with values that were not tried.
    assert tuning.tune(search(tmp_path, trials=5)) == 0
    assert len({folder.read_config().settings.learning_rate for folder in find_runs([config.folder])}) == 5


def test_a_search_that_is_killed_goes_on(tmp_path: Path) -> None:
    config = search(tmp_path, seeds=2, trials=3)
    process = Fork(lambda: tuning.tune(config))
    wait_until(lambda: any(tmp_path.rglob("checkpoints/0*/manifest.json")))
    kill_with_descendants(process.pid)
    process.wait()
    with config.journal.open("ab") as file:
        file.write(b'{"op_code": 4, "wor')  # it was just writing
    begun = open_study(config).get_trials(states=(TrialState.RUNNING,))
    assert begun
    assert tuning.tune(config) == 0
    trials = open_study(config).get_trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
    assert [trials[trial.number].params for trial in begun] == [trial.params for trial in begun]
    for trial in trials:
        folders = find_runs([config.folder / f"trial-{trial.number:04d}"])
        assert len(folders) == 2
        assert all(folder.read_status().state is State.FINISHED for folder in folders)
        assert trial.value == pytest.approx(np.mean([folder.read_episodes().last for folder in folders]))


def test_bad_trials_are_given_up_by_the_scores_of_their_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rewards of Sutton and Barto the scores are -1, else about 20: that is known after few frames."""
    monkeypatch.setattr("dae.experiments.training.checkpointer._SECONDS_BETWEEN_STATUS", 0.1)
    config = search(
        tmp_path,
        space=("env_kwargs=sutton_barto_reward=false,sutton_barto_reward=true", "learning_rate=1e-4..1e-3"),
        settings=("frames=6K", *SETTINGS[1:4]),
        sampler="random",
        trials=4,
        startup_trials=2,
        seed=2,
    )
    assert tuning.tune(config) == 0
    trials = open_study(config).get_trials()
    given_up = [trial for trial in trials if trial.state is TrialState.PRUNED]
    assert given_up
    assert all(trial.params["env_kwargs"].endswith("true") for trial in given_up)
    for trial in given_up:
        (folder,) = find_runs([config.folder / f"trial-{trial.number:04d}"])
        assert folder.read_status().state is State.STOPPED
        assert folder.read_status().frames < 6_000
    assert 'env_kwargs = "sutton_barto_reward=false"' in (config.folder / "best.toml").read_text()


def test_values_that_do_not_go_together_are_failed_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = search(tmp_path, space=("batch_size=1,64",), settings=SETTINGS[:3], advantage="gae", trials=2, seed=0)
    assert tuning.tune(config) == 0
    states = {trial.params["batch_size"]: trial.state for trial in open_study(config).get_trials()}
    assert states == {"1": TrialState.FAIL, "64": TrialState.COMPLETE}
    assert "failed (batch_size=1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--space", "learning_rat=1,2"], "'learning_rat' is not a setting; did you mean learning_rate?"),
        (["--space", "epochs=5..2"], "a range is LOW..HIGH with numbers LOW < HIGH"),
        (["--space", "gamma=0.9,0.9"], "its values must be different"),
        (["--space", "seed=1,2"], "seed has an option of its own"),
        (["--settings", "epochs=3"], "epochs is in settings and in space"),
        (["--tag", "../x"], "tag is '../x': it must be at most 100 letters"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "CartPole-v1", "--out", str(tmp_path / "tune"), *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "tune").exists()


def test_another_search_in_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = search(tmp_path)
    config.folder.mkdir(parents=True)
    open_study(config)
    before = config.journal.read_bytes()
    words = ["--out", str(tmp_path), "--space", "epochs=1..3", "--settings", *SETTINGS]
    assert main(["tune", "CartPole-v1", *words]) == 2
    assert "holds another search (space is" in capsys.readouterr().err
    assert config.journal.read_bytes() == before
    config.journal.write_text("hello\nworld\n")
    assert main(["tune", "CartPole-v1", *words]) == 2
    assert "is not the study of a search" in capsys.readouterr().err


def test_without_optuna_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.experiments.tune.study.find_spec", lambda name: None)
    assert main(["tune", "CartPole-v1", "--out", str(tmp_path / "tune")]) == 2
    assert "pip install 'dae-rl[tune]'" in capsys.readouterr().err
    assert not (tmp_path / "tune").exists()


def test_a_search_that_finds_nothing_says_so_and_leaves_no_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = search(tmp_path, space=("batch_size=1,2",), settings=SETTINGS[:3], advantage="gae", trials=1, seed=2)
    assert tuning.tune(config) == 1
    assert "1 trial: 0 finished, 0 given up, 1 failed; nothing was found" in capsys.readouterr().out
    started: list[Fork] = []

    class Watched(Forks):
        def start(self, run: PlannedRun) -> Fork:
            started.append(super().start(run))
            return started[-1]

    broken = search(tmp_path / "more", settings=("frames=100K", *SETTINGS[1:]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tuning.LAUNCHERS, "local", Watched)
        patch.setattr(tuning._Search, "_look_at", lambda *_: (_ for _ in ()).throw(UserError("enough")))
        with pytest.raises(UserError, match="enough"):
            tuning.tune(broken)
    assert started
    assert all(process.exit_code() is not None for process in started)


@pytest.mark.parametrize(("written", "read"), [(".9", 0.9), ("1.", 1.0), ("1e-3", 1e-3), ("01", 1)])
def test_numbers_of_the_best_settings_can_be_read(written: str, read: float) -> None:
    assert tomllib.loads(f"gamma = {_toml_value(written)}") == {"gamma": read}


def test_ranges_include_both_ends() -> None:
    space = parse_space(("a=1..3", "b=0.5..1", "c=log:1e-3..1"))
    assert [(r.low, r.high, r.log, r.whole) for r in space.values()] == [  # type: ignore[union-attr]
        (1, 3, False, True),
        (0.5, 1, False, False),
        (1e-3, 1, True, False),
    ]
    with pytest.raises(InvalidValue, match="above 0 for log"):
        parse_space(("a=log:0..1",))
