"""The chain experiment: seeds as one batched computation against one seed after the other."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from tests.experiments.synthetic.plain import PlainAgent, loop_over_time
from torch import Tensor

from dae.core.scan import discounted_sums
from dae.experiments.synthetic.config import SyntheticConfig
from dae.experiments.synthetic.learners import GROUP, Learners

CPU = torch.device("cpu")
ROUNDS = 5


def with_our_scan(x: Tensor, discount: float) -> Tensor:
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


def one_by_one(config: SyntheticConfig, method: str, sums: Callable[[Tensor, float], Tensor], iterations: int) -> float:
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
    print(
        "\nthe chain experiment on 2 cores, ms for an iteration of one seed (best of 5 rounds that take turns): groups"
    )
    print("of seeds as `dae synthetic` trains them, and one seed after the other with modules and one-hot inputs, with")
    print("sums over time in a loop (the plain program of the tests) or by our scan")
    print(f"{'':>6}{'batched':>9}{'loop':>9}{'speed-up':>10}{'scan':>9}{'speed-up':>10}{'batched, 100 x 1000':>21}")
    for method in ("dae", "gae"):
        together, looped, scanned = [], [], []
        for _ in range(ROUNDS):
            with ThreadPoolExecutor(2) as pool:
                times = pool.map(partial(batched, config, method), [20, 20])
                together.append(sum(times) / 4)  # two groups at a time
            looped.append(one_by_one(config, method, loop_over_time, 10))
            scanned.append(one_by_one(config, method, with_our_scan, 20))
        ours, loop, scan = min(together), min(looped), min(scanned)
        print(
            f"{method:>6}{ours * 1e3:9.2f}{loop * 1e3:9.2f}{loop / ours:10.1f}{scan * 1e3:9.2f}{scan / ours:10.1f}"
            f"{f'{ours * 1e5 / 60:.1f} min':>21}"
        )
