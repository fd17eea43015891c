"""Atari's emulators: steps a second beside ale-py's own and Stable-Baselines3's; the parts of a step; starting them."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ale_py
import gymnasium as gym
import numpy as np
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack

import dae
from benchmarks.timing import answer, best_seconds, in_turns, print_header, print_row
from dae.envs.atari.game import FRAME_SKIP, Game
from dae.envs.atari.options import AtariOptions

CORES = len(os.sched_getaffinity(0))
GAMES = {"Breakout": "breakout", "Pong": "pong", "Seaquest": "seaquest"}
N_ENVS = 16
SECONDS = 0.3  # of a measurement


def ours(game: str, parallel: int) -> VecEnv:
    return dae.make_vec_env(f"ALE/{game}-v5", N_ENVS, seed=0, n_processes=parallel)


def emulators_own(game: str, parallel: int) -> ale_py.AtariVectorEnv:
    """ale-py's vector of games in threads, with the same preprocessing by its own code."""
    return ale_py.AtariVectorEnv(
        GAMES[game],
        N_ENVS,
        num_threads=parallel,
        life_loss_info=True,
        reward_clipping=False,
        max_num_frames_per_episode=AtariOptions().max_episode_frames,
        autoreset_mode="SameStep",
    )


def sb3_dummy(game: str, parallel: int) -> VecEnv:
    return dae.make_vec_env(f"ALE/{game}-v5", N_ENVS, seed=0, backend="sb3")


def sb3_subproc(game: str, parallel: int) -> VecEnv:
    """A process for each game; started before this one has threads, so that it may fork."""
    gym.register_envs(ale_py)
    options = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}}
    return VecFrameStack(make_atari_env(f"{game}NoFrameskip-v4", N_ENVS, seed=0, **options), 4)


SIDES: dict[str, tuple[Callable[[str, int], Any], int]] = {
    "ours, 1 process": (ours, 1),
    f"ours, {CORES} processes": (ours, CORES),
    "ale-py, 1 thread": (emulators_own, 1),
    f"ale-py, {CORES} threads": (emulators_own, CORES),
    "SB3, DummyVecEnv": (sb3_dummy, 1),
    f"SB3, SubprocVecEnv ({N_ENVS} processes)": (sb3_subproc, N_ENVS),
}


def serve_steps(side: str, game: str) -> None:
    """Answer with the steps a second of random actions."""
    make, parallel = SIDES[side]
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    env = make(game, parallel)
    env.reset()
    n_actions = getattr(env, "single_action_space", env.action_space).n
    actions = np.random.default_rng(0).integers(n_actions, size=(64, N_ENVS))
    turn = itertools.cycle(actions)
    for _ in range(64):  # leave the first moments of the games behind
        env.step(next(turn))

    def measure() -> list[float]:
        start, steps = time.perf_counter(), 0
        while (taken := time.perf_counter() - start) < SECONDS:
            env.step(next(turn))
            steps += N_ENVS
        return [steps / taken]

    answer(measure)
    env.close()


def compare(games: list[str], rounds: int) -> None:
    """Steps a second of all sides, in turns, each in a process of its own."""
    print(f"\n**Emulators alone**, steps (of {FRAME_SKIP} frames) a second, {N_ENVS} games, random actions:\n")
    print_header("", *games)
    rates = {
        game: in_turns({side: ("benchmarks.atari", "steps", side, game) for side in SIDES}, rounds=rounds)
        for game in games
    }
    for side in SIDES:
        print_row(side, *(f"{max(rate for (rate,) in rates[game][side]):,.0f}" for game in games))


def parts_of_a_step(games: list[str]) -> None:
    """What a step of one of our games consists of."""
    print("\n**The parts of a step** of one of our games, in µs:\n")
    print_header(
        "",
        "step",
        f"{FRAME_SKIP} frames in the emulator",
        "2 screens",
        "picture of 84 x 84",
        "Python; new lives and games",
    )
    for game in games:
        played = Game(GAMES[game], AtariOptions())
        played.start((0, 0))
        actions = itertools.cycle(np.random.default_rng(0).integers(len(played.action_set), size=64).tolist())

        def emulate(played: Game = played, actions: itertools.cycle = actions) -> None:
            for _ in range(FRAME_SKIP):
                played._ale.act(played.action_set[next(actions)])
            if played._ale.game_over():
                played._ale.reset_game()

        seconds = best_seconds(
            {
                "step": lambda played=played, actions=actions: played.step(next(actions)),
                "emulator": emulate,
                "screens": lambda played=played: (played._look(0), played._look(1)),
                "picture": played._frame,
            },
            rounds=9,
        )
        whole, *parts = (1e6 * taken for taken in seconds.values())
        print_row(game, *(f"{taken:,.0f}" for taken in (whole, *parts, whole - sum(parts))))


def serve_start(n_envs: str, n_processes: str) -> None:
    """Print the seconds that two games and many take to start, the bytes that this process grows by, and the seconds of
    it that a step of a game takes."""
    start_games(2, int(n_processes)).close()  # loads what all need
    memory, envs, seconds = resident_bytes(), [], []
    for n in (2, int(n_envs)):
        begin = time.perf_counter()
        envs.append(start_games(n, int(n_processes)))
        seconds.append(time.perf_counter() - begin)
    grown, busy = resident_bytes() - memory, time.process_time()
    for _ in range(64):
        envs[-1].step(np.zeros(envs[-1].num_envs, np.int64))
    print(*seconds, grown, (time.process_time() - busy) / 64 / envs[-1].num_envs)


def start_games(n_envs: int, n_processes: int) -> VecEnv:
    env = dae.make_vec_env("ALE/Breakout-v5", n_envs, seed=0, n_processes=n_processes)
    env.reset()
    env.step(np.ones(n_envs, np.int64))
    return env


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def starting(n_envs: int) -> None:
    """The seconds and the memory that emulators take."""
    print("\n**Starting** Breakout; 1024 games from the seconds of 2 and of these many:\n")
    columns = ("seconds", "1024 games, seconds", "MB a game", "main process, µs a step")
    print_header("games", "processes", *columns)
    for n_processes in sorted({1, CORES}):
        command = [sys.executable, "-m", "benchmarks.atari", "start", str(n_envs), str(n_processes)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        of_two, of_many, grown, busy = map(float, printed.split())
        of_all = of_two + (of_many - of_two) / (n_envs - 2) * 1022
        in_this_process = f"{grown / (n_envs + 2) / 1e6:.2f}" if n_processes == 1 else ""
        print_row(n_envs, n_processes, f"{of_many:.1f}", f"{of_all:.0f}", in_this_process, f"{1e6 * busy:.0f}")


def main(quick: bool = False) -> None:
    print(f"\nAtari's emulators on {CORES} cores; best of rounds that take turns")
    games = list(GAMES)[:1] if quick else list(GAMES)
    compare(games, rounds=2 if quick else 5)
    parts_of_a_step(games)
    starting(8 if quick else 64)


if __name__ == "__main__":
    {"steps": serve_steps, "start": serve_start}[sys.argv[1]](*sys.argv[2:])
