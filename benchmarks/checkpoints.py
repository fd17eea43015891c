"""What checkpoints cost: taking the state of a run and writing it, against the time of an iteration."""

import tempfile
import time
from pathlib import Path

import torch

from dae.experiments.config import parse
from dae.experiments.training.building import make_env, make_model
from dae.experiments.training.state import Counters, take_checkpoint
from dae.runs import Checkpoints

CASES = {
    "MinAtar, 128 actors": ["MinAtar/Breakout-v1", "--preset", "quick"],
    "MinAtar, 1024 actors": ["MinAtar/Breakout-v1"],
    "MinAtar, 1024 actors, wide": ["MinAtar/Breakout-v1", "--network", "wide"],
    "CartPole, 32 actors": ["CartPole-v1", "--preset", "quick"],
}


def main() -> None:
    torch.set_num_threads(2)
    print("\nCheckpoints: best of 5; share of the time with a state taken each iteration (at most 1 %) and written")
    print("every 60 s, the default")
    print(f"{'case':>28}{'take (ms)':>12}{'write (ms)':>12}{'MB':>8}{'write every 60 s':>18}")
    for name, words in CASES.items():
        config = parse([*words, "--threads", "2"])
        model = make_model(config, make_env(config))
        model._setup_learn(10**9)
        for parameter in model.policy.parameters():  # a step, so that Adam has its moments
            parameter.grad = torch.zeros_like(parameter)
        model.policy.optimizer.step()
        taking, writing = [], []
        with tempfile.TemporaryDirectory() as folder:
            for k in range(5):
                model.num_timesteps = k
                start = time.perf_counter()
                checkpoint = take_checkpoint(config, model, Counters(monitor_size=0), exact=True)
                taken = time.perf_counter()
                Checkpoints(Path(folder)).save(checkpoint)
                writing.append(time.perf_counter() - taken)
                taking.append(taken - start)
        size = sum(map(len, checkpoint.parts.values())) / 1e6
        share = min(writing) / 60
        print(f"{name:>28}{min(taking) * 1e3:12.1f}{min(writing) * 1e3:12.1f}{size:8.1f}{share:18.3%}", flush=True)
