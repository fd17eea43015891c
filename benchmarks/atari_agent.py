"""PPO on Atari: iterations, and what they consist of, against Stable-Baselines3's on its own path."""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ale_py
import gymnasium as gym
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecFrameStack
from torch.profiler import ProfilerActivity, profile

from benchmarks.atari import CORES
from benchmarks.timing import answer, in_turns, print_header, print_row
from dae.agent import PPO
from dae.experiments.config import parse
from dae.experiments.training.building import make_env, make_model

N_STEPS, BATCH, EPOCHS = 128, 256, 4


def make_ours(n_envs: int, *, advantage: str = "gae", n_steps: int = N_STEPS) -> PPO:
    """Return the agent of `dae train`, with the usual network and as many epochs for all estimators."""
    actors = f"--actors {n_envs} --steps {n_steps} --batch-size {BATCH} --epochs {EPOCHS}"
    config = parse(f"ALE/Breakout-v5 --advantage {advantage} --preset quick --atari-trunk code {actors}".split())
    return make_model(config, make_env(config))


def make_theirs(n_envs: int) -> OnPolicyAlgorithm:
    """Return the agent and the games that rl-zoo trains; the network is the same."""
    gym.register_envs(ale_py)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    games = VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", n_envs, seed=0), 4)
    settings = {"learning_rate": 2.5e-4, "clip_range": 0.1, "ent_coef": 0.01, "seed": 0}
    return stable_baselines3.PPO("CnnPolicy", games, n_steps=N_STEPS, batch_size=BATCH, n_epochs=EPOCHS, **settings)


SIDES: dict[str, tuple[Callable[[int], OnPolicyAlgorithm], str]] = {
    "SB3": (make_theirs, "forward"),
    "GAE": (make_ours, "act"),
    "DAE": (partial(make_ours, advantage="dae"), "act"),
}


def stopwatch(owner: Any, name: str) -> Callable[[], float]:
    """Time the calls of a method; return a function that tells the seconds since it was last called."""
    method, seconds = getattr(owner, name), [0.0]

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = method(*args, **kwargs)
        seconds[0] += time.perf_counter() - start
        return result

    def read() -> float:
        taken, seconds[0] = seconds[0], 0.0
        return taken

    setattr(owner, name, timed)
    return read


def collect(model: OnPolicyAlgorithm) -> None:
    """Collect a rollout as `learn` does."""
    _, callback = model._setup_learn(10**9, reset_num_timesteps=False)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def serve(side: str, n_envs: str) -> None:
    """Answer with the seconds of an iteration: in the games, in the policy while acting, in all of the rollout, in the
    update."""
    torch.set_num_threads(CORES)
    make, acting = SIDES[side]
    model = make(int(n_envs))
    collect(model)
    in_games, in_policy = stopwatch(model.env, "step"), stopwatch(model.policy, acting)

    def measure() -> tuple[float, ...]:
        start = time.perf_counter()
        collect(model)
        rollout = time.perf_counter() - start
        model.train()
        return in_games(), in_policy(), rollout, time.perf_counter() - start - rollout

    in_policy()
    answer(measure)
    model.env.close()


def compare(n_envs: int, rounds: int) -> None:
    """Whole iterations of all sides, in turns, each in a process of its own; each keeps its best."""
    seconds = in_turns({side: ("benchmarks.atari_agent", side, n_envs) for side in SIDES}, rounds=rounds)
    best = {side: min(taken, key=lambda parts: parts[2] + parts[3]) for side, taken in seconds.items()}
    for side, (in_games, in_policy, rollout, update) in best.items():
        iteration = rollout + update
        ratio = sum(best["SB3"][2:]) / iteration
        parts = (in_games, in_policy, rollout - in_games - in_policy, rollout, update)
        rate = f"{n_envs * N_STEPS / iteration:,.0f}"
        print_row(n_envs, side, *(f"{part:.2f}" for part in parts), rate, f"{ratio:.2f}")


KINDS = {
    "convolutions": ("convolution",),
    "matrix products": ("addmm", "aten::mm"),
    "activations": ("threshold_backward", "clamp_min", "relu"),
    "Adam": ("adam",),
    "gathering and converting frames": ("index_select", "copy_", "div", "_to_copy"),
}


def parts_of_an_update(n_envs: int) -> None:
    """Where the time of an update goes, by PyTorch's operations."""
    torch.set_num_threads(CORES)
    model = make_ours(n_envs, advantage="dae")
    collect(model)
    model.train()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        model.train()
    model.env.close()
    operations = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    total, rest = sum(operations.values()), dict(operations)
    print(f"\n**Where an update's time goes** (DAE, {n_envs} actors, on the CPU):\n")
    print_header("", "share")
    for kind, words in KINDS.items():
        chosen = [key for key in rest if any(word in key for word in words)]
        print_row(kind, f"{sum(rest.pop(key) for key in chosen) / total:.1%}")
    print_row("rest: losses, norms, statistics, Python", f"{sum(rest.values()) / total:.1%}")


def main(quick: bool = False) -> None:
    print(f"\nPPO on Atari Breakout, {CORES} cores, {N_STEPS} steps an actor, minibatches of {BATCH}, {EPOCHS} epochs,")
    print("convolutions 32-64-64; best of iterations in turns, each side in a process of its own\n")
    print("**Iterations**, seconds of the best one:\n")
    columns = ("games", "policy", "rest", "rollout", "update", "steps a second", ": SB3")
    print_header("actors", "", *columns)
    for n_envs, rounds in {2: 1}.items() if quick else {8: 5, 16: 4, 64: 2}.items():
        compare(n_envs, rounds)
    parts_of_an_update(2 if quick else 8)


if __name__ == "__main__":
    serve(*sys.argv[1:])
