"""A rollout of the paper's size in Atari: memory and time of single frames against whole observations."""

import resource
import subprocess
import sys
import time

import numpy as np
import torch
from gymnasium import spaces

from dae.agent import Rollout
from dae.agent.allocator import keep_freed_memory
from dae.agent.policy import Acted

N_ENVS, N_STEPS, N_STACK, BATCH, N_ACTIONS = 1024, 128, 4, 256, 18
SEEN = spaces.Box(0, 255, (N_STACK, 84, 84), np.uint8)
EPISODE = 200  # steps, on average: a life of a game


def main() -> None:
    print(f"\nA rollout of {N_ENVS} actors x {N_STEPS} steps, stacks of {N_STACK} frames of 84 x 84; 1 thread")
    print(f"peak memory above the imported process; best ms to store a step, and to read a minibatch of {BATCH} frames")
    print(f"{'stored':>10}{'tensors (MB)':>15}{'peak (MB)':>12}{'store':>8}{'rows':>8}{'steps':>8}")
    for n_stack in (N_STACK, 1):
        words = [sys.executable, "-m", "benchmarks.rollout", str(n_stack)]
        print(subprocess.run(words, capture_output=True, text=True, check=True).stdout, end="", flush=True)


def measure(n_stack: int) -> None:
    """Store two rollouts, and read all of the last once in each order."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as PPO does
    rng = np.random.default_rng(0)
    screens = rng.integers(1, 256, (2 * N_ENVS, 84, 84), np.uint8)
    seen = np.zeros((N_ENVS, *SEEN.shape), np.uint8)
    before = _peak()
    rollout = Rollout(
        N_STEPS, N_ENVS, SEEN, spaces.Discrete(N_ACTIONS), torch.device("cpu"), has_head=True, n_stack=n_stack
    )
    rollout.reset()
    numbers, table = torch.zeros(N_ENVS), torch.zeros(N_ENVS, N_ACTIONS)
    acted = Acted(torch.zeros(N_ENVS, dtype=torch.long), numbers, numbers, table, table)
    storing = []
    for t in range(2 * N_STEPS):  # the second rollout finds the memory that the first one took
        if rollout.full:
            rollout.reset()
        ended = rng.random(N_ENVS) < 1 / EPISODE
        seen[:, :-1] = seen[:, 1:]
        seen[ended] = 0
        seen[:, -1] = screens[(t * 97) % N_ENVS :][:N_ENVS]
        start = time.perf_counter()
        rollout.add_observations(torch.from_numpy(seen))
        storing.append(time.perf_counter() - start)
        rollout.add(np.zeros(N_ENVS), ended, np.zeros(N_ENVS, bool), acted)
    reading = []
    for batching in ("trajectories", "steps"):
        minibatches, times = rollout.minibatches(batching, BATCH), [time.perf_counter()]
        times += [time.perf_counter() for _ in minibatches]
        reading.append(np.diff(times))
    print(
        f"{'frames' if n_stack > 1 else 'whole':>10}{rollout.nbytes / 1e6:15.0f}{(_peak() - before) / 1e6:12.0f}"
        + "".join(f"{min(seconds) * 1e3:8.2f}" for seconds in (storing[N_STEPS:], *reading))
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    measure(int(sys.argv[1]))
