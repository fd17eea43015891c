"""Atari runs as a user meets them: trained, stopped and continued exactly, played, filmed."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dae
from dae.cli import main
from dae.errors import InvalidValue
from dae.experiments.config import parse
from dae.experiments.monte_carlo import ActionValues, Simulator, action_values
from dae.experiments.training.run import train
from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, outcome, small
from tests.experiments.test_resume import in_another_process, killed_at_a_checkpoint
from tests.processes import Fork, wait_until

GAME = ["ALE/Breakout-v5", "--preset", "quick", "--actors", "4", "--steps", "16", "--batch-size", "64"]
SHORT = ["--env-kwargs", "max_episode_frames=400"]


def test_a_killed_run_goes_on_exactly(tmp_path: Path) -> None:
    """Lives are lost, games end, actions are sticky, and the policy plays on without learning at the end."""
    words = ["--frames", "1K", "--epochs", "1", "--sticky-actions", "0.25", "--finishing", "True", *SHORT]
    plain, disturbed = (small(tmp_path / name, *words, of=GAME) for name in ("plain", "disturbed"))
    assert in_another_process(plain) == 0
    process = Fork(lambda: train(disturbed))
    wait_until(lambda: len(list(disturbed.folder.glob("checkpoints/*-rollout"))) > 0)
    process.kill()
    # From the rollout, though its update may have been saved as well: its frames are stacked again.
    before = max(disturbed.folder.glob("checkpoints/*-rollout"))
    shutil.rmtree(before.with_name(before.name.removesuffix("-rollout")), ignore_errors=True)
    assert in_another_process(disturbed) == 0
    assert outcome(RunFolder(disturbed.folder)) == outcome(RunFolder(plain.folder))
    episodes = RunFolder(plain.folder).read_episodes()
    assert len(episodes) >= 3
    assert (4 * episodes.lengths <= 400).all()
    assert 4 * episodes.lengths.sum() >= 1000


def test_a_run_is_played_and_filmed_in_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        *GAME,
        *ALWAYS,
        *SHORT,
        "--frames",
        "4K",
        "--steps",
        "25",
        "--batch-size",
        "100",
        "--out",
        str(tmp_path),
        "--pictures",
        "True",
    ]
    assert main(["train", *words]) == 0
    folder = tmp_path / "ALE-Breakout-v5" / "dae-baseline" / "seed-0"
    run = dae.load_run(folder)
    assert run.model.num_timesteps == 1000  # 4 frames each
    assert run.episodes.frames[-1] <= 4000
    assert "4,000 frames in" in capsys.readouterr().out
    with Image.open(folder / "episode.gif") as film:
        colours = np.unique(np.asarray(film.convert("RGB")).reshape(-1, 3), axis=0).astype(int)
    assert (np.ptp(colours, axis=1) > 60).sum() > 5  # not grey
    assert (folder / "learning_curve.png").exists()
    assert main(["play", str(folder), "--episodes", "2"]) == 0
    assert re.search(
        r"ALE/Breakout-v5, 4,000 frames of training, 2 stochastic episodes: score", capsys.readouterr().out
    )


@pytest.mark.slow
def test_games_of_stable_baselines3_start_again_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, "--frames", "1K", "--backend", "sb3", *SHORT, of=GAME)
    killed_at_a_checkpoint(config)
    assert train(config) == 0
    assert "ALE/Breakout-v5 cannot be restored exactly" in capsys.readouterr().err


def test_what_only_some_families_have_is_refused_elsewhere(tmp_path: Path) -> None:
    for words in (["--backend", "sb3"], ["--sticky-actions", "0.25"], ["--minatar-version", "1.0.10"]):
        config = parse(["CartPole-v1", *words])
        with pytest.raises(InvalidValue, match=r"CartPole-v1 is not a game of (MinAtar|Atari|MinAtar or Atari)"):
            config.require_consistent()
    with pytest.raises(InvalidValue, match=r"sticky_actions is 0.25, and env_kwargs has sticky_action_prob too"):
        parse(["Pong", "--sticky-actions", "0.25", "--env-kwargs", "sticky_action_prob=0"]).require_consistent()
    assert parse(["pong"]).env == "ALE/Pong-v5"
    assert parse(["Pong", "--sticky-actions", "0.25"]).env_options == {"sticky_action_prob": 0.25, "backend": "dae"}


def test_rollouts_from_restored_games_do_not_depend_on_the_processes() -> None:
    def values(n_processes: int, *seeds: int) -> list[ActionValues]:
        env = dae.make_vec_env("ALE/Assault-v5", 4, seed=0, n_processes=n_processes, sticky_action_prob=0.25)
        simulator = Simulator(dae.PPO("CnnPolicy", env, n_steps=8, batch_size=8, seed=0), env)
        for _ in range(5):
            simulator.env.step(np.zeros(4, int))
        states = simulator.take([2, 3])
        found = [action_values(simulator, states, rollouts=1, horizon=30, gamma=0.99, seed=seed) for seed in seeds]
        env.close()
        return found

    one, other = values(1, 3, 4)
    (two,) = values(2, 3)
    assert len(np.unique(one.returns)) > 1
    np.testing.assert_array_equal(one.returns, two.returns)
    np.testing.assert_array_equal(one.lengths, two.lengths)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert not np.array_equal(one.returns, other.returns)
