"""MinAtar steps a second with 1024 environments and random actions: ours raw and as a VecEnv, against the package."""

import os
from collections.abc import Callable

import gymnasium as gym
import minatar.gym as package
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

import dae
from benchmarks.timing import best_seconds
from dae.envs.minatar import GAMES, MinAtarBatch

N_ENVS = 1024


def random_player(step: Callable[[np.ndarray], object], n_actions: int) -> Callable[[], object]:
    """One step of all environments; the actions are drawn beforehand, so that drawing them is not measured."""
    actions = np.random.default_rng(0).integers(n_actions, size=(64, N_ENVS))
    turn = iter(range(10**9))
    return lambda: step(actions[next(turn) % 64])


def package_vec_env(game: str) -> VecEnv:
    """What an SB3 user has today: the package's environments, each in a Monitor, in a DummyVecEnv."""

    def make() -> gym.Env:
        options = {"sticky_action_prob": 0.0, "difficulty_ramping": False}
        return Monitor(package.BaseEnv(game, use_minimal_action_set=True, **options))

    env = DummyVecEnv([make] * N_ENVS)
    env.reset()
    return env


def main() -> None:
    print(f"\nMinAtar, {N_ENVS} environments, random actions, million steps a second on {os.cpu_count()} cores")
    header = ["game", "raw 1 thread", "raw 2 threads", "VecEnv", "package", "VecEnv : package"]
    print("".join(f"{name:>17}" for name in header))
    for game in GAMES:
        env_id = f"MinAtar/{game.title().replace('_', '')}-v1"
        one, two = (MinAtarBatch(game, N_ENVS, seed=0, n_threads=n) for n in (1, 2))
        ours, theirs = dae.make_vec_env(env_id, N_ENVS, seed=0), package_vec_env(game)
        ours.reset()
        players = {
            "one": random_player(one.step, one.n_actions),
            "two": random_player(two.step, two.n_actions),
            "ours": random_player(ours.step, one.n_actions),
            "theirs": random_player(theirs.step, one.n_actions),
        }
        for name in ("one", "two", "ours"):  # leave the first episodes behind, where little is on the screen
            for _ in range(300):
                players[name]()
        seconds = best_seconds(players, rounds=9, seconds=0.1, patience=3.0)
        rates = [N_ENVS / seconds[name] / 1e6 for name in players]
        ratio = seconds["theirs"] / seconds["ours"]
        print(f"{game:>17}" + "".join(f"{rate:17.3f}" for rate in rates) + f"{ratio:17.0f}", flush=True)
