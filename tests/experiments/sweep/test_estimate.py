"""What a sweep would take is measured in seconds, and not far from what it takes."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dae
from dae.agent.reference import ReferencePPO
from dae.cli import main
from dae.envs.atari.family import Atari
from dae.experiments.config import TrainConfig
from dae.experiments.sweep import measuring
from dae.experiments.sweep.estimate import Kind, speeds_of
from dae.experiments.training.building import make_env
from tests.experiments.small import CARTPOLE, small

SECONDS_OF_A_STEP, SECONDS_OF_A_MINIBATCH = 0.01, 0.005


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TrainConfig, float]]:
    """What is measured, and for how long; all of it has a speed of 1000 frames per second."""
    calls: list[tuple[TrainConfig, float]] = []

    def measure(config: TrainConfig, seconds: float) -> float:
        calls.append((config, seconds))
        return 1000.0

    monkeypatch.setattr(measuring, "measured_speed", measure)
    return calls


def test_the_largest_suite_takes_few_measurements(
    measured: list[tuple[TrainConfig, float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "minatar", "--dry-run", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr()
    kinds = [(config.env, config.network, config.advantage) for config, _ in measured]
    assert kinds == [("MinAtar/Asterix-v1", n, a) for n in ("baseline", "wide") for a in ("dae", "gae")]
    assert sum(seconds for _, seconds in measured) <= 5
    assert "dae: measuring MinAtar/Asterix-v1 wide gae 1024 actors (4 of 4)\n" in told.err
    assert told.out.count("about 1,000 frames/s (measured)") == 4
    assert told.out.count("about 1,000 frames/s (as MinAtar/Asterix-v1)") == 16
    assert "measured just now, for a second or so: one environment of each kind" in told.out
    days = 1000 * 10_000_000 / 1000 / 86_400 / len(os.sched_getaffinity(0))
    assert f"about {days:.1f} days, " in told.out


def test_what_earlier_runs_recorded_wins(measured: list[tuple[TrainConfig, float]], tmp_path: Path) -> None:
    config = small(tmp_path)
    kinds = {
        Kind(f"MinAtar/{game}-v1", "baseline", advantage, 8, "dae", "dae"): config
        for game in ("Breakout", "Freeway")
        for advantage in ("dae", "gae")
    }
    breakout, breakout_gae, freeway, freeway_gae = kinds
    speeds = speeds_of(kinds, {breakout: 50.0})
    assert speeds[breakout] == (50.0, "earlier runs")
    assert speeds[freeway] == (50.0, "as MinAtar/Breakout-v1 before")
    assert speeds[breakout_gae] == (1000.0, "measured")
    assert speeds[freeway_gae] == (1000.0, "as MinAtar/Breakout-v1")
    assert len(measured) == 1


@pytest.mark.parametrize("steps", [1, 32])
@pytest.mark.parametrize("agent", [dae.PPO, ReferencePPO])
def test_a_measured_speed_is_that_of_a_whole_iteration(
    steps: int, agent: type[dae.PPO], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an iteration whose steps and minibatches are slowed down, so that its length is known."""

    def slow(what: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def slowed(*arguments: Any) -> Any:
            time.sleep(seconds)
            return what(*arguments)

        return slowed

    def slow_env(config: TrainConfig) -> Any:
        env = make_env(config)
        env.step = slow(env.step, SECONDS_OF_A_STEP)  # type: ignore[method-assign]
        return env

    def slow_update(model: dae.PPO) -> None:
        frames = model.n_steps * model.n_envs
        time.sleep(model.n_epochs * frames / model.batch_size * SECONDS_OF_A_MINIBATCH)

    monkeypatch.setattr(measuring, "make_env", slow_env)
    monkeypatch.setattr(agent, "train", slow_update)
    words = ["--advantage", "gae", "--implementation", "dae" if agent is dae.PPO else "sb3"]
    words += ["--actors", "64", "--steps", str(steps), "--epochs", "4", "--threads", "0"]
    config = small(tmp_path, *words, of=CARTPOLE)
    collected = 64 * steps
    expected = collected / (steps * SECONDS_OF_A_STEP + 4 * collected / config.batch_size * SECONDS_OF_A_MINIBATCH)
    assert 0.7 * expected < measuring.measured_speed(config, 0.2) < 1.05 * expected


def test_what_would_take_long_is_measured_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments that take 5 ms to make and 1 ms to step, each, and a network that learns from a step in 1 ms."""
    made: list[int] = []

    def slow_env(config: TrainConfig) -> Any:
        made.append(config.actors)
        env = make_env(config)
        time.sleep(0.005 * config.actors)
        step = env.step
        env.step = lambda actions: (time.sleep(0.001 * env.num_envs), step(actions))[1]  # type: ignore[func-returns-value, method-assign]
        return env

    learned: list[int] = []

    def slow_update(model: dae.PPO) -> None:
        learned.append(model.n_steps * model.n_envs)
        time.sleep(0.001 * learned[-1] * model.n_epochs)

    monkeypatch.setattr(measuring, "_LONG", 0.5)
    monkeypatch.setattr(measuring, "make_env", slow_env)
    monkeypatch.setattr(dae.PPO, "train", slow_update)
    config = small(tmp_path, "--actors", "400", "--batch-size", "256", "--threads", "0", of=CARTPOLE)
    assert 0.8 < measuring.measured_speed(config, 0.2) * (0.001 + config.epochs * 0.001) < 1.05
    assert max(made) == 16
    assert max(learned) == 64


def test_a_plan_of_many_combinations_has_a_line_for_those_that_are_alike(
    measured: list[tuple[TrainConfig, float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Atari, "require_known", lambda family, env_id: None)
    assert main(["sweep", "atari", "--dry-run", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert len(measured) == 6, "three networks, two estimators, one game"
    assert re.findall(
        r"49 ALE/\* (\w+ \w+) 1024 actors +490 runs of 40M frames: 0 finished, 0 begun; about 1,000", told
    ) == [f"{network} {method}" for network in ("baseline", "wide", "deep") for method in ("dae", "gae")]
