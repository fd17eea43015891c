"""Monte-Carlo rollouts on MinAtar against bare batched play of the same network, and what the paper's study takes."""

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

import dae
from benchmarks.timing import print_header, print_row
from dae.agent import PPO
from dae.envs.minatar import GAMES
from dae.experiments.monte_carlo import Outcomes, Plan, Simulator
from dae.text import plural

SLOTS, HORIZON = 1024, 512
STATES, ROLLOUTS, CHECKPOINTS = 1024, 128, 50  # the paper's study, for every action


def make_games(game: str, seed: int) -> VecEnv:
    return dae.make_vec_env(f"MinAtar/{game.title().replace('_', '')}-v1", SLOTS, seed)


def play(model: PPO, env: VecEnv, steps: int) -> None:
    """Bare play: act, step, and nothing else."""
    observations = env.reset()
    for _ in range(steps):
        _, acted, _ = model.act(observations, None)
        observations = env.step(acted.actions.numpy())[0]


def make_plan(rollouts: int, n_actions: int) -> Plan:
    """The actions of one state after the other, as in a study."""
    starts, actions = np.divmod(np.arange(rollouts), n_actions)
    return Plan(starts % SLOTS, actions, np.arange(rollouts), seed=0)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(game: str, rollouts: int, rounds: int) -> tuple[int, float, float, float]:
    """Return the number of actions, the mean length of rollouts, and frames per second of rollouts and of bare play.

    Both play the same number of frames, up to one step of all games, and take turns; each keeps its best time.
    """
    env = make_games(game, seed=1)
    model = dae.PPO("CnnPolicy", env, **dae.paper_settings("minatar"), seed=0, device="cpu")
    simulator = Simulator(model, make_games(game, seed=2))
    play(model, simulator.env, 64)
    states = simulator.take(range(SLOTS))
    plan = make_plan(rollouts, simulator.n_actions)

    def play_out() -> Outcomes:
        return simulator.play_out(states, plan, horizon=HORIZON, gamma=0.99)

    frames = int(play_out().lengths.sum())
    steps = math.ceil(frames / SLOTS)
    seconds = [(seconds_of(play_out), seconds_of(lambda: play(model, env, steps))) for _ in range(rounds)]
    ours, bare = np.min(seconds, axis=0)
    return simulator.n_actions, frames / rollouts, frames / ours, steps * SLOTS / bare


def main(quick: bool = False) -> None:
    games, rounds = (["breakout", "space_invaders"], 1) if quick else (list(GAMES), 3)
    # A policy of a study has 6,000 rollouts and more; those of Freeway never end, and are all equally long.
    rollouts = {game: 2048 if quick else 4096 if game == "freeway" else 12_288 for game in games}
    threads = plural(torch.get_num_threads(), "thread")
    print(
        f"\nMonte-Carlo rollouts of a fresh agent with the paper's network: {max(rollouts.values()):,} (Freeway fewer) "
        f"of at most {HORIZON} steps in {SLOTS} places, from restoring the first state to the end of the last rollout, "
        f"against bare play with {SLOTS} games; {threads}, best of {rounds}. The paper's study of a game: {STATES} "
        f"states, all actions, {ROLLOUTS} rollouts, {CHECKPOINTS} checkpoints, if rollouts are as long as here, and if "
        "none ends.\n"
    )
    print_header(
        *("game", "actions", "mean length", "rollouts, frames/s", "bare play, frames/s", "ratio"),
        *("study, hours", "at most"),
    )
    for game in games:
        actions, length, ours, bare = measure(game, rollouts[game], rounds)
        hours = STATES * actions * ROLLOUTS * CHECKPOINTS / ours / 3600
        speeds = (f"{ours:,.0f}", f"{bare:,.0f}", f"{ours / bare:.2f}")
        name = game.replace("_", " ").title()
        print_row(name, actions, f"{length:.1f}", *speeds, f"{hours * length:.1f}", f"{hours * HORIZON:.0f}")
