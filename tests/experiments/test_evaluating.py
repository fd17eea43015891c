"""Evaluation during training, the best agent, and runs that are given more frames."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dae
from dae.cli import main
from dae.errors import UserError
from dae.experiments.training.building import make_env, make_model
from dae.experiments.training.evaluating import Evaluator
from dae.experiments.training.recorder import Recorder
from dae.experiments.training.run import train
from dae.experiments.training.state import Counters
from dae.runs import Checkpoint, RunFolder
from tests.experiments.small import CARTPOLE, outcome, small, weights_hash
from tests.experiments.test_resume import in_another_process, killed_at_a_checkpoint, killed_until_done

EVALUATED = ["--eval-every", "512", "--eval-episodes", "5"]


def test_evaluations_change_nothing_and_survive_kills(tmp_path: Path) -> None:
    watched = ["--frames", "3K", *EVALUATED, "--normalize-observations", "True"]
    plain = small(tmp_path / "plain", *watched[:2], *watched[-2:], of=CARTPOLE)
    whole, killed = (small(tmp_path / name, *watched, of=CARTPOLE) for name in ("whole", "killed"))
    assert in_another_process(plain) == in_another_process(whole) == 0
    assert outcome(RunFolder(whole.folder)) == outcome(RunFolder(plain.folder))
    assert killed_until_done(killed, kills=4, slowest=1.0) >= 1
    assert outcome(RunFolder(killed.folder)) == outcome(RunFolder(plain.folder))
    lines = [(config.folder / "evaluations.csv").read_text().splitlines()[1:] for config in (whole, killed)]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 1 + 3000 // 512 + (3072 % 512 == 0)
    best = [RunFolder(config.folder).best.newest(print) for config in (whole, killed)]
    assert best[0] is not None
    assert best[1] is not None
    assert best[0].frames == best[1].frames


def test_the_best_agent_is_the_one_that_was_evaluated_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, "--frames", "2K", *EVALUATED, "--eval-greedy", "True", of=CARTPOLE)
    assert train(config) == 0
    newest, best = dae.load_run(config.folder), dae.load_run(config.folder, best=True)
    scores = newest.evaluations.scores
    assert newest.folder.read_status().best == scores.max()
    assert newest.folder.read_status().evaluation == scores[-1]
    assert main(["runs", str(tmp_path)]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert dict(zip(*table, strict=True))["best"] == f"{scores.max():.2f}"
    assert main(["play", str(config.folder), "--best", "--episodes", "2", "--film", "none"]) == 0
    assert f"CartPole-v1, the best agent, {best.model.num_timesteps:,} frames of training" in capsys.readouterr().out
    assert best.model.num_timesteps == newest.evaluations.frames[scores.argmax()]
    assert newest.model.num_timesteps == 2048
    # What was measured, measured again by Stable-Baselines3 on the best agent with the same seed.
    seed = int(np.random.SeedSequence((0, best.model.num_timesteps)).generate_state(1)[0])
    again, _ = evaluate_policy(best.model, best.make_env(5, seed), 5, deterministic=True)
    assert again == pytest.approx(scores.max())
    events = EventAccumulator(str(config.folder / "tensorboard")).Reload().Scalars("eval/mean_reward")
    assert [event.value for event in events] == pytest.approx(scores, rel=1e-6)
    assert [event.step for event in events] == newest.evaluations.frames.tolist()


def test_a_best_agent_that_a_resume_forgets_does_not_hold_up_the_next(tmp_path: Path) -> None:
    config = small(tmp_path, *EVALUATED, of=CARTPOLE)
    folder = RunFolder(config.folder)
    folder.path.mkdir(parents=True)
    for frames in (100, 200, 300):  # the first is removed for the newer ones
        folder.best.save(Checkpoint(frames, {}))
    counters = Counters(evaluated_at=100, best=5.0)
    agent = make_model(config, make_env(config))
    with Evaluator(config, folder, agent, counters, Recorder(config, folder, agent, counters)):
        pass
    assert (counters.best, folder.best.newest_frames()) == (None, 0)


def test_without_evaluations_there_is_no_best_agent(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "256", of=CARTPOLE)
    assert train(config) == 0
    assert len(dae.load_run(config.folder).evaluations) == 0
    with pytest.raises(UserError, match="no best agent: nothing was evaluated; train with --eval-every"):
        dae.load_run(config.folder, best=True).model  # noqa: B018


def test_a_run_with_constant_rates_is_extended_to_what_the_longer_run_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    constant = ["--anneal", "False", "--eval-every", "512", "--eval-episodes", "2"]
    longer = small(tmp_path / "longer", *constant, "--frames", "2K", of=CARTPOLE)
    assert train(longer) == 0
    shorter = small(tmp_path / "shorter", *constant, "--frames", "1K", of=CARTPOLE)
    assert train(shorter) == 0
    assert train(dataclasses.replace(shorter, frames=2000)) == 0
    assert "is extended from 1,000 to 2,000 frames\n" in capsys.readouterr().err
    one, two = RunFolder(shorter.folder), RunFolder(longer.folder)
    assert outcome(one) == outcome(two)
    assert one.read_config().settings == two.read_config().settings
    assert one.evaluations.read_text().splitlines()[1:] == two.evaluations.read_text().splitlines()[1:]


def test_an_annealed_run_that_is_extended_says_so_and_stays_known_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(tmp_path, "--frames", "512", "--finishing", "True", of=CARTPOLE)
    assert train(config) == 0
    scores = (config.folder / "monitor.csv").read_bytes()
    assert main(["train", "--resume", str(config.folder), "--frames", "1024", "--pictures", "False"]) == 0
    assert "learning rate and clip range go on at 50% of their start and fall to 0 again" in capsys.readouterr().err
    assert (config.folder / "monitor-512.csv").read_bytes() == scores
    stored = json.loads((config.folder / "config.json").read_text())["settings"]
    assert (stored["frames"], stored["extended_from"]) == (1024, [512])
    assert dae.load_run(config.folder).model.num_timesteps == 1024
    before = weights_hash(RunFolder(config.folder))
    assert main(["train", "--resume", str(config.folder), "--pictures", "False"]) == 0  # finished
    assert weights_hash(RunFolder(config.folder)) == before
    assert train(dataclasses.replace(config, frames=1024)) == 0  # the command that was given
    with pytest.raises(UserError, match="frames is 1024 there and 512 here"):
        train(config)


def test_a_run_whose_rates_fall_is_extended_when_it_is_finished(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "1500", of=CARTPOLE)
    killed_at_a_checkpoint(config)
    before = {path: path.read_bytes() for path in config.folder.glob("*.*")}
    with pytest.raises(UserError, match="has not finished its 1,500 frames, over which its learning rate falls to 0"):
        train(dataclasses.replace(config, frames=3000))
    assert {path: path.read_bytes() for path in config.folder.glob("*.*")} == before


def test_what_a_run_has_behind_it_does_not_belong_to_another(tmp_path: Path) -> None:
    """The settings of an extended run serve a new one, which was not extended, and a sweep counts the extended one."""
    config = small(tmp_path, "--frames", "256", of=CARTPOLE)
    assert train(config) == train(dataclasses.replace(config, frames=512)) == 0
    again = ["--config", str(config.folder / "config.json"), "--seed", "7", "--threads", "1", "--pictures", "no"]
    assert main(["train", *again, "--out", str(tmp_path)]) == 0
    stored = [dae.load_run(config.folder.parent / name).config.extended_from for name in ("seed-0", "seed-7")]
    assert stored == [(256,), ()]
    settings = ["frames=512", "actors=4", "steps=32", "batch_size=64", "epochs=2"]
    words = ["--envs", "CartPole-v1", "--advantages", "dae", "--preset", "quick", "--settings", *settings]
    assert main(["sweep", *words, "--out", str(tmp_path)]) == 0


def test_only_frames_can_grow(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "256", of=CARTPOLE)
    assert train(config) == 0
    before = (config.folder / "config.json").read_bytes()
    with pytest.raises(UserError, match=r"gamma is 0\.98 there and 0\.5 here"):
        train(dataclasses.replace(config, frames=512, gamma=0.5))
    assert (config.folder / "config.json").read_bytes() == before
