"""A new estimator and a new family are one file each; everything else follows, from training to the report.

They are imported when these tests begin and forgotten when they end: no other test meets them.
"""

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dae
from dae import catalog
from dae.agent import AdvantageEstimator
from dae.agent.settings import falling
from dae.catalog import colour_of
from dae.cli import main
from dae.envs import family as families
from dae.experiments.config import TrainConfig, parse
from dae.experiments.sweep import measuring
from dae.experiments.sweep.config import suites
from dae.experiments.training.building import make_env
from dae.experiments.training.run import train
from dae.report.reading import Result, read_result
from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, outcome
from tests.processes import Fork, has_checkpoint, wait_until

SMALL: dict[str, Any] = {"n_steps": 16, "batch_size": 16, "seed": 0}


@pytest.fixture(scope="module", autouse=True)
def toys() -> Iterator[tuple[ModuleType, ModuleType]]:
    """The two files, imported as a user's program would."""
    names = ("tests.extending.toy_estimator", "tests.extending.toy_family")
    yield tuple(import_module(name) for name in names)  # type: ignore[misc]
    catalog._KNOWN.pop("running-mean")
    dae.agent.ESTIMATORS.pop("running-mean")
    families._FAMILIES[:] = [family for family in families._FAMILIES if family.name != "toy"]
    for name in names:
        del sys.modules[name]


@pytest.fixture
def running_mean(toys: tuple[ModuleType, ModuleType]) -> Any:
    return toys[0].RunningMean


def toy(out: Path, *words: str) -> TrainConfig:
    return parse(["Toy/Walk-v0", "--preset", "tiny", *ALWAYS, "--epochs", "1", "--out", str(out), *words])


@pytest.mark.parametrize("given_as", ["name", "class", "instance"])
def test_an_estimator_is_given_by_name_class_or_instance(given_as: str, running_mean: Any) -> None:
    advantage = {"name": "running-mean", "class": running_mean, "instance": running_mean(decay=0.5)}[given_as]
    model = dae.PPO("MlpPolicy", "CartPole-v1", advantage=advantage, **SMALL).learn(64)
    assert model.advantage == "running-mean"
    assert model.estimator.mean > 0
    assert (model.n_epochs, model.vf_coef) == (1, 0.5), "its own default, and Stable-Baselines3's"


def test_options_and_state_of_an_estimator_are_saved_with_the_agent(tmp_path: Path, running_mean: Any) -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", advantage=running_mean(decay=0.9), **SMALL).learn(64)
    model.save(tmp_path / "agent.zip")
    loaded = dae.PPO.load(tmp_path / "agent.zip", env=model.get_env())
    assert type(loaded.estimator) is running_mean
    assert loaded.estimator is not model.estimator
    assert loaded.estimator.decay == 0.9
    assert torch.equal(loaded.estimator.mean, model.estimator.mean)
    loaded.learn(64)


def test_an_estimator_that_is_not_known_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dae.PPO("MlpPolicy", "CartPole-v1", advantage="running-mean", **SMALL).save(tmp_path / "agent.zip")
    monkeypatch.delitem(dae.agent.ESTIMATORS, "running-mean")
    with pytest.raises(ValueError, match=r"'running-mean' is not known here; import the module that defines it"):
        dae.PPO.load(tmp_path / "agent.zip")


def test_an_estimator_that_is_not_registered_is_refused(running_mean: Any) -> None:
    """A saved agent would not find it again: it would come back as another one, or not at all."""
    derived = type("Derived", (running_mean,), {})
    for advantage in (derived, derived(), AdvantageEstimator):
        with pytest.raises(ValueError, match=r"is not registered: give it an `info` of its own"):
            dae.PPO("MlpPolicy", "CartPole-v1", advantage=advantage)


def test_every_agent_has_an_estimator_of_its_own(running_mean: Any) -> None:
    shared = running_mean(decay=0.9)
    first, second = (dae.PPO("MlpPolicy", "CartPole-v1", advantage=shared, gamma=g, **SMALL) for g in (0.5, 0.9))
    first.learn(64)
    assert (first.estimator.gamma, second.estimator.gamma, first.estimator.decay) == (0.5, 0.9, 0.9)
    assert (first.estimator.mean > 0, second.estimator.mean, shared.mean) == (True, 0, 0)


def test_what_an_estimator_declares_holds_for_ppo_and_for_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {"gamma": 0.9, "gae_lambda": 0.5, "normalize_advantage": False, "n_epochs": 2, "ent_coef": 0.5}
    info = replace(catalog.describe("running-mean"), paper=declared, defaults=declared)
    monkeypatch.setitem(catalog._KNOWN, "running-mean", info)
    monkeypatch.setattr(dae.agent.ESTIMATORS["running-mean"], "info", info)
    model = dae.PPO("MlpPolicy", "CartPole-v1", advantage="running-mean", n_steps=256)
    assert {name: getattr(model, name) for name in declared} == declared
    arguments = parse(["CartPole-v1", "--advantage", "running-mean"]).arguments(falling)
    assert {name: arguments[name] for name in declared} == declared


def test_an_estimator_that_declares_an_unknown_setting_is_refused(running_mean: Any) -> None:
    info = dae.agent.EstimatorInfo("misspelt", "Misspelt", paper={"gama": 0.9})
    with pytest.raises(ValueError, match=r"'gama' is not a setting of PPO; did you mean gamma\?"):
        dae.agent.register_estimator(type("Misspelt", (running_mean,), {"info": info}))


def test_a_name_belongs_to_one_estimator(running_mean: Any) -> None:
    with pytest.raises(ValueError, match="the name 'running-mean' is already used by another estimator, Running mean"):
        dae.agent.register_estimator(
            type("Other", (running_mean,), {"info": dae.agent.EstimatorInfo("running-mean", "Other")})
        )


@pytest.mark.parametrize(
    "words", [["--advantage", "dae"], ["--advantage", "running-mean"]], ids=["dae", "running-mean"]
)
def test_a_family_trains_and_resumes_exactly(words: list[str], tmp_path: Path) -> None:
    plain, killed = (toy(tmp_path / name, "--frames", "12K", *words) for name in ("plain", "killed"))
    assert train(plain) == 0
    process = Fork(lambda: train(killed))
    wait_until(lambda: has_checkpoint(RunFolder(killed.folder)))
    process.kill()
    assert train(killed) == 0
    assert outcome(RunFolder(killed.folder)) == outcome(RunFolder(plain.folder))


def test_frames_are_counted_as_the_family_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four frames pass in a step of this family: 4K are 1,000 steps, rounded up to 16 rollouts of 4 x 16 steps."""
    words = ("--frames", "4K", "--eval-every", "1K", "--eval-episodes", "2", "--advantage", "gae")
    config = toy(tmp_path / "runs", *words, "--no-finishing")
    assert train(config) == 0
    assert "4,096 frames (4,000, rounded up to whole iterations) in" in capsys.readouterr().out
    run = dae.load_run(config.folder)
    assert run.model.num_timesteps == 1_024
    status = run.folder.read_status()
    assert (status.frames, status.total_frames, run.config.frames) == (4_096, 4_000, 4_000)
    assert run.folder.checkpoints.newest_frames() == 4_096

    assert run.evaluations.frames.tolist() == [1_024, 2_048, 3_072, 4_096], "between iterations, of 256 frames each"
    assert run.folder.best.newest_frames() in run.evaluations.frames
    events = EventAccumulator(str(run.folder.tensorboard)).Reload()
    assert [event.step for event in events.Scalars("eval/mean_reward")] == run.evaluations.frames.tolist()
    assert [event.step for event in events.Scalars("time/fps")] == [256 * k for k in range(1, 17)]

    ended = run.episodes.frames
    assert (ended % 16 == 0).all(), "4 actors x 4 frames pass at a time"
    assert 3_900 < ended[-1] <= 4_096
    assert 4 * run.episodes.lengths.sum() <= 4_096 < 4 * run.episodes.lengths.sum() + 4 * 4 * 60, (
        "all but the last ones"
    )
    for axis, of_episode in (("frames", ended), ("episodes", 4 * run.episodes.lengths.cumsum())):
        result = read_result(run.folder, axis)  # type: ignore[arg-type]
        assert isinstance(result, Result)
        parts = np.minimum(np.ceil(of_episode / 40).astype(int), 100)  # hundredths of 4,000 frames
        assert (np.unique(parts) == np.flatnonzero(~np.isnan(result.curve)) + 1).all()
        assert result.curve[parts[0] - 1] == run.episodes.scores[parts == parts[0]].mean()

    capsys.readouterr()
    assert main(["runs", str(tmp_path / "runs")]) == 0
    assert re.search(r"finished +4,096/4,000 +4,096 ", capsys.readouterr().out)
    longer = parse(["--resume", str(config.folder), "--frames", "6K", "--no-pictures", "--threads", "1"])
    assert train(longer) == 0
    assert "is extended from 4,000 to 6,000 frames; learning rate" in (told := capsys.readouterr()).err
    assert "continuing at 4,096 frames" in told.out
    assert dae.load_run(config.folder).model.num_timesteps == 1_536


def test_the_finishing_phase_counts_frames_as_the_family_does(tmp_path: Path) -> None:
    config = toy(tmp_path)
    assert train(config) == 0
    lengths = 4 * dae.load_run(config.folder).episodes.lengths
    assert config.frames == 1_600
    assert lengths.sum() >= 1_600 > lengths.sum() - lengths[-4:].sum()


def test_one_rollout_is_told_in_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(toy(tmp_path, "--frames", "256", "--no-finishing")) == 0
    assert "256 frames are one rollout (16 steps x 4 actors x 4 frames), within which" in capsys.readouterr().err
    assert train(toy(tmp_path / "more", "--frames", "257", "--no-finishing")) == 0
    assert capsys.readouterr().err == ""


def test_a_speed_is_estimated_in_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 actors whose steps take 10 ms: 4 x 4 frames each time."""

    def slow_env(config: TrainConfig) -> Any:
        env = make_env(config)
        step = env.step
        env.step = lambda actions: (time.sleep(0.01), step(actions))[1]  # type: ignore[func-returns-value, method-assign]
        return env

    monkeypatch.setattr(measuring, "make_env", slow_env)
    monkeypatch.setattr(dae.PPO, "train", lambda model: None)
    assert 0.7 * 1_600 < measuring.measured_speed(toy(tmp_path), 0.2) < 1.05 * 1_600


def test_a_family_plays_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--advantage", "gae"], ["--advantage", "running-mean"]):
        for seed in ("0", "1"):
            assert train(toy(tmp_path / "runs", "--seed", seed, *words)) == 0
    capsys.readouterr()
    folder = toy(tmp_path / "runs", "--advantage", "running-mean").folder
    assert main(["play", str(folder), "--episodes", "3"]) == 0
    told = capsys.readouterr().out
    assert "Toy/Walk-v0, 1,792 frames of training, 3 stochastic episodes: " in told
    assert re.search(r"an episode \(\d+ steps?, score .*\.gif", told)
    assert list((folder / "play").glob("*.gif"))

    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "report")]) == 0
    told = capsys.readouterr().out
    assert "Toy worlds: 1.6K of 8K frames, 2 of 3 seeds, 1 of 2 environments" in told
    page = (tmp_path / "report" / "index.html").read_text()
    assert '<section id="toy"><h2>Toy worlds</h2>' in page
    assert "Running mean over GAE, baseline" in page
    colour = colour_of("running-mean")
    assert f"--method-1-running-mean: {colour.light};" in page
    assert f"--method-1-running-mean: {colour.dark};" in page
    assert page.count("var(--method-1-running-mean)") > 3
    table = (tmp_path / "report" / "tables" / "scores-toy-baseline.md").read_text()
    assert "| Walk |" in table, "the environment has the protocol's name"


def test_commands_of_other_processes_know_what_a_module_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep trains in new interpreters: DAE_IMPORT tells them, and any other command, what to import."""
    monkeypatch.setenv("DAE_IMPORT", "tests.extending.toy_family,tests.extending.toy_estimator")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    words = ["--envs", "Toy/Walk-v0", "--preset", "tiny", "--advantages", "running-mean", "gae", "--out", str(tmp_path)]
    assert main(["sweep", *words]) == 0
    assert "2 of 2 runs finished" in capsys.readouterr().out
    monkeypatch.setenv("DAE_IMPORT", "no.such.module")
    assert main(["runs", str(tmp_path)]) == 2
    assert "dae: DAE_IMPORT names 'no.such.module', which cannot be imported" in capsys.readouterr().err


def test_a_family_with_a_protocol_is_a_suite() -> None:
    (suite,) = suites()["toy"].grids
    assert (suite.envs, suite.networks, suite.seeds) == (("Toy/Walk-v0", "Toy/Run-v0"), ("baseline",), 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Toy/Walk-v0", "--preset", "quick"], "preset is 'quick': for Toy worlds it must be one of paper, tiny"),
        (["Toy/Walk-v0", "--network", "wide"], "network is 'wide': it must be baseline for Toy/Walk-v0"),
        (
            ["CartPole-v1", "--preset", "tiny"],
            "preset is 'tiny': it must be one of paper, quick",
        ),
    ],
)
def test_what_a_family_does_not_have_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words]) == 2
    assert message in capsys.readouterr().err
