"""The chain experiment: seeds as one batched computation against one seed after the other."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from tests.experiments.synthetic.plain import PlainAgent
from torch import Tensor

from dae.core.scan import discounted_sums
from dae.experiments.synthetic.config import SyntheticConfig
from dae.experiments.synthetic.learners import GROUP, Learners

CPU = torch.device("cpu")
ROUNDS = 5


def sums(x: Tensor, discount: float) -> Tensor:
    """What the plain program has a loop over time for, as fast as we can."""
    return discounted_sums(x, torch.ones_like(x, dtype=torch.bool), discount)


def batched(config: SyntheticConfig, method: str, iterations: int) -> float:
    """Seconds for an iteration of a seed in a group, on one thread."""
    torch.set_num_threads(1)
    learners = Learners(config, method, range(GROUP), CPU)
    learners.iterate()
    start = time.perf_counter()
    for _ in range(iterations):
        learners.iterate()
    return (time.perf_counter() - start) / iterations / GROUP


def one_by_one(config: SyntheticConfig, method: str, iterations: int) -> float:
    """Seconds for an iteration of a seed alone, on two threads."""
    torch.set_num_threads(2)
    drawn = Learners(config, method, [0], CPU)
    layers = [(w[0], b[0, :, 0]) for w, b in zip(drawn.critics.weights, drawn.critics.biases, strict=True)]
    agent = PlainAgent(config, method, drawn.best[0], layers, sums=sums)
    chances = torch.rand(iterations + 1, config.trajectories, config.states)
    agent.iterate(chances[0])
    start = time.perf_counter()
    for chance in chances[1:]:
        agent.iterate(chance)
    return (time.perf_counter() - start) / iterations


def main() -> None:
    config = SyntheticConfig()
    print("\nthe chain experiment on 2 cores, ms for an iteration of one seed (best of 5 rounds that take turns):")
    print(
        "groups of seeds as `dae synthetic` trains them, and one seed after the other with modules and one-hot inputs"
    )
    print(f"{'':>12}{'batched':>10}{'one by one':>12}{'speed-up':>10}{'100 seeds, 1000 iterations':>30}")
    for method in ("dae", "gae"):
        together, alone = [], []
        for _ in range(ROUNDS):
            with ThreadPoolExecutor(2) as pool:
                times = pool.map(partial(batched, config, method), [20, 20])
                together.append(sum(times) / 4)  # two groups at a time
            alone.append(one_by_one(config, method, 20))
        ours, theirs = min(together), min(alone)
        print(
            f"{method:>12}{ours * 1e3:10.2f}{theirs * 1e3:12.2f}{theirs / ours:10.1f}{f'{ours * 1e5 / 60:.1f} min':>30}"
        )
