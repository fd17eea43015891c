"""The undamaged files: small agents, runs that were stopped or have finished, settings, and results."""

import json
import os
import shutil
import signal
from pathlib import Path
from unittest.mock import patch

import dae
from dae.cli import main
from dae.experiments.training.checkpointer import Checkpointer
from tests.report.folders import write_run

TINY = ["--preset", "quick", "--steps", "8", "--batch-size", "16", "--epochs", "1", "--frames", "128", "--threads", "1"]
SWEEP = ["--envs", "CartPole-v1", "--advantages", "dae", "--seeds", "2", "--preset", "quick", "--jobs", "1"]
SWEEP += ["--settings", "frames=32", "actors=2", "steps=8", "batch_size=16", "epochs=1"]
SYNTHETIC = ["--iterations", "2", "--states", "4", "--hidden", "4", "--threads", "1", "--device", "cpu"]
TOML = """env = "CartPole-v1"
advantage = "dae"
network = "baseline"
preset = "quick"
seed = 3
frames = "2K"
actors = 4
steps = 32
batch_size = 64
learning_rate = 1e-3
gamma = 0.98
clip_range = 0.2
row_length = 16
max_grad_norm = "None"
extra_mlp = false
normalize_observations = "yes"
eval_every = "1K"
eval_episodes = 3
tag = "mine"
track = "none"
minatar_version = "1.0.15"
device = "cpu"
finishing = true
threads = 1
checkpoint_seconds = 60
pictures = false
out = "runs"

[env_kwargs]
sutton_barto_reward = true
"""
NORMALISED = ("--normalize-observations", "yes", "--normalize-rewards", "yes")
EVALUATED = ("--eval-every", "16", "--eval-episodes", "1")


def make_originals(folder: Path) -> None:
    """Write all of them, each in a folder of its own."""
    settings = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "seed": 0}
    small = {"net_arch": [8]}
    env = dae.make_vec_env("CartPole-v1", 2)
    dae.PPO("MlpPolicy", env, policy_kwargs=small, **settings).learn(32).save(folder / "agent" / "agent.zip")
    env = dae.make_vec_env("MinAtar/Breakout-v1", 2)
    narrow = {"features_extractor_kwargs": {"width": 0.125}}
    images = dae.PPO("CnnPolicy", env, advantage="indirect", policy_kwargs=narrow, **settings)
    images.learn(32).save(folder / "agent-images" / "agent.zip")
    _stopped(folder / "cartpole" / "run", "CartPole-v1", "--actors", "2", *NORMALISED, *EVALUATED)
    _stopped(folder / "breakout" / "run", "MinAtar/Breakout-v1", "--actors", "4")
    (folder / "toml").mkdir()
    (folder / "toml" / "settings.toml").write_text(TOML)
    (folder / "json").mkdir()
    shutil.copy(folder / "cartpole" / "run" / "config.json", folder / "json")
    runs, finished = folder / "runs", folder / "finished"
    for method, seed in (("dae", 0), ("dae", 1), ("gae", 0)):
        write_run(finished, method=method, seed=seed, episodes=[(float(i % 3), 30 * i + 1) for i in range(30)])
    shutil.copytree(finished, runs)
    assert main(["archive", str(finished), "--out", str(folder / "archived")]) == 0
    shutil.copytree(folder / "cartpole" / "run", runs / "stopped")
    assert main(["synthetic", "--seeds", "1", *SYNTHETIC, "--out", str(folder / "synthetic")]) == 0
    for seed in range(2):
        words = [word for setting in SWEEP[-5:] for word in (f"--{setting.replace('_', '-')}".split("="))]
        options = ["--preset", "quick", "--seed", str(seed), "--threads", "1", "--pictures", "False"]
        assert main(["train", "CartPole-v1", *words, *options, "--out", str(folder / "sweep")]) == 0
        (folder / "sweep" / "CartPole-v1" / "dae-baseline" / f"seed-{seed}" / "log.txt").write_text("it was trained\n")
    for kind in ("lock", "tensorboard", "synthetic.png", "synthetic.svg", "synthetic.pdf"):
        for path in folder.rglob(kind):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _stopped(place: Path, env_id: str, *words: str) -> None:
    """Train until one iteration is left, and stop as a signal does it; two checkpoints are there."""
    save, saved = Checkpointer.save, []

    def save_and_stop(checkpointer: Checkpointer) -> None:
        save(checkpointer)
        saved.append(checkpointer)
        frames = checkpointer._agent.num_timesteps
        if frames + 2 * checkpointer._agent.n_steps * checkpointer._agent.n_envs > 128:
            os.kill(os.getpid(), signal.SIGTERM)

    out = place.parent / "out"
    options = ["--pictures", "False", "--checkpoint-seconds", "0", "--out", str(out)]
    with patch.object(Checkpointer, "save", save_and_stop):
        assert main(["train", env_id, *words, *TINY, *options]) == 143
    (folder,) = (path.parent for path in out.rglob("config.json"))
    folder.rename(place)
    shutil.rmtree(out)
    assert json.loads((place / "status.json").read_bytes())["state"] == "stopped"
    assert len(list((place / "checkpoints").iterdir())) == 2
