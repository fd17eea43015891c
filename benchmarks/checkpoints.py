"""What checkpoints cost: taking the state of a run and writing it, against the time of an iteration."""

import tempfile
import time
from pathlib import Path

import torch

from dae.agent import PPO
from dae.experiments.config import TrainConfig, parse
from dae.experiments.training.building import make_env, make_model
from dae.experiments.training.state import Counters, take_checkpoint
from dae.runs import Checkpoints

CASES = {
    "MinAtar, 128 actors": ["MinAtar/Breakout-v1", "--actors", "128"],
    "MinAtar, 1024 actors": ["MinAtar/Breakout-v1"],
    "MinAtar, 1024 actors, wide": ["MinAtar/Breakout-v1", "--network", "wide"],
    "CartPole, 32 actors": ["CartPole-v1", "--preset", "quick"],
}


def main() -> None:
    torch.set_num_threads(2)
    print("\nCheckpoints: best of 5; share of the time if one is written every 60 s, the default; with a rollout it is")
    print("written only in iterations that take longer than that")
    print(f"{'case':>28}{'rollout':>9}{'take (ms)':>12}{'write (ms)':>12}{'MB':>8}{'every 60 s':>12}")
    for name, words in CASES.items():
        config = parse([*words, "--threads", "2"])
        model = make_model(config, make_env(config))
        model._setup_learn(10**9)
        model.rollout_buffer.reset()
        for parameter in model.policy.parameters():  # a step, so that Adam has its moments
            parameter.grad = torch.zeros_like(parameter)
        model.policy.optimizer.step()
        for pending in (False, True):
            taking, writing, size = measure(config, model, pending)
            print(
                f"{name:>28}{'with' if pending else 'without':>9}{taking * 1e3:12.1f}{writing * 1e3:12.1f}"
                f"{size / 1e6:8.1f}{(taking + writing) / 60:12.3%}",
                flush=True,
            )


def measure(config: TrainConfig, model: PPO, pending: bool) -> tuple[float, float, int]:
    """Return the seconds that it takes to take and to write a checkpoint, and its bytes."""
    taking, writing = [], []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(5):
            model.num_timesteps = k
            start = time.perf_counter()
            checkpoint = take_checkpoint(config, model, Counters(monitor_size=0), exact=True, pending=pending)
            taken = time.perf_counter()
            Checkpoints(Path(folder)).save(checkpoint)
            writing.append(time.perf_counter() - taken)
            taking.append(taken - start)
    return min(taking), min(writing), sum(map(len, checkpoint.parts.values()))
