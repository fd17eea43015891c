"""A prototype: some games step in their processes while the policy acts for the others. Does it pay?"""

import copy
import sys
import time

import numpy as np
import torch
from stable_baselines3.common.utils import obs_as_tensor
from torch import Tensor

from benchmarks.atari import CORES
from benchmarks.atari_agent import EPOCHS, collect, make_ours
from benchmarks.timing import answer, in_turns, print_header, print_row
from dae.agent import PPO
from dae.agent.policy import Acted
from dae.envs.atari.vec_env import AtariVecEnv


def in_groups(env: AtariVecEnv, count: int) -> list[AtariVecEnv]:
    """Return groups of the games of an environment, each with as many of its processes."""
    size, left = divmod(len(env._parts), count)
    assert not left, f"{len(env._parts)} processes for {count} groups"
    groups = []
    for at in range(0, len(env._parts), size):
        slices = env._slices[at : at + size]
        first, last = slices[0].start, slices[-1].stop
        group = copy.copy(env)
        group._parts = env._parts[at : at + size]
        group._slices = [slice(of.start - first, of.stop - first) for of in slices]
        group._stacks, group.num_envs = env._stacks[first:last], last - first
        groups.append(group)
    return groups


def collect_overlapped(model: PPO, groups: list[AtariVecEnv]) -> None:
    """Do what `collect_rollouts` does, without callbacks; the policy acts for a group while the others' games go on."""
    rollout = model.rollout_buffer
    model.policy.set_training_mode(False)
    rollout.reset()
    acted = [_act(model, group) for group in groups]
    for t in range(rollout.n_steps):
        rollout.add_observations(torch.cat([observations for observations, _ in acted]))
        steps, acting = [], []
        for group in groups:
            steps.append(group.step_wait())
            if t + 1 < rollout.n_steps:
                acting.append(_act(model, group))
        rewards, dones = (np.concatenate([step[i] for step in steps]) for i in (1, 2))
        infos = [info for step in steps for info in step[3]]
        ended = np.flatnonzero(dones)
        model._update_info_buffer([infos[i] for i in ended], dones[ended])
        truncated = np.zeros_like(dones)
        truncated[ended] = [infos[i]["TimeLimit.truncated"] for i in ended]
        model._bootstrap(np.flatnonzero(truncated), infos, t)
        rollout.add(rewards, dones & ~truncated, truncated, _joined([done for _, done in acted]))
        model.num_timesteps += len(dones)
        acted = acting
    model._last_obs = np.concatenate([group._stacks for group in groups])
    with torch.no_grad():
        rollout.finish(model.policy.predict_values(obs_as_tensor(model._last_obs, model.device)))


def _act(model: PPO, group: AtariVecEnv) -> tuple[Tensor, Acted]:
    """Let the games of a group begin their next step; return what they showed, and what the policy did and said."""
    observations, acted, _ = model.act(group._stacks, None)
    group.step_async(acted.actions.cpu().numpy())
    return observations, acted


def _joined(acted: list[Acted]) -> Acted:
    return Acted(*(None if parts[0] is None else torch.cat(parts) for parts in zip(*acted, strict=True)))


def serve(n_envs: str, n_steps: str, groups: str, processes: str, threads: str) -> None:
    """Answer with the seconds of a rollout; in no groups, it is the product's."""
    model = make_model(int(n_envs), int(n_steps), int(processes), int(threads))
    parts = in_groups(model.env, int(groups)) if int(groups) else []

    def measure() -> list[float]:
        start = time.perf_counter()
        if parts:
            collect_overlapped(model, parts)
        else:
            collect(model)
        return [time.perf_counter() - start]

    answer(measure)
    model.env.close()


def serve_update(n_frames: str) -> None:
    """Answer with the seconds of an update; GAE's does not depend on how many actors the frames are from."""
    model = make_model(16, int(n_frames) // 16, CORES, CORES)

    def measure() -> list[float]:
        start = time.perf_counter()
        model.train()
        return [time.perf_counter() - start]

    answer(measure)
    model.env.close()


def make_model(n_envs: int, n_steps: int, processes: int, threads: int) -> PPO:
    """Return an agent with a rollout."""
    torch.set_num_threads(processes)  # there are as many processes as threads when games are made
    model = make_ours(n_envs, n_steps=n_steps)
    torch.set_num_threads(threads)
    collect(model)
    return model


def compare(n_envs: int, n_steps: int, arranged: list[tuple[int, int, int]], rounds: int) -> None:
    """Rollouts in turns, each side in a process of its own; the update is the same for all."""
    sides = {words: ("benchmarks.atari_overlap", "rollout", n_envs, n_steps, *words) for words in arranged}
    seconds = in_turns(sides | {"update": ("benchmarks.atari_overlap", "update", n_envs * n_steps)}, rounds=rounds)
    *rollouts, update = (min(taken for (taken,) in times) for times in seconds.values())
    for (groups, processes, threads), rollout in zip(arranged, rollouts, strict=True):
        gain = (rollouts[0] + update) / (rollout + update) - 1
        rate, iteration = f"{n_envs * n_steps / rollout:,.0f}", f"{rollout + update:.2f}"
        cells = (groups or "none", processes, threads, f"{rollout:.2f}", rate, iteration, f"{gain:+.1%}")
        print_row(n_envs, n_steps, *cells)


def main(quick: bool = False) -> None:
    print(
        f"\n**Overlapping games and policy**, Breakout, {CORES} cores, GAE, {EPOCHS} epochs; seconds, best of rollouts"
    )
    print("in turns; more actors with fewer steps, as the time of both rollout and update goes with the product\n")
    columns = ("rollout", "steps a second", "iteration", "gain")
    print_header("actors", "steps", "groups", "processes", "threads of the policy", *columns)
    halves, thirds = 2 * -(-CORES // 2), 3 * -(-CORES // 3)  # processes that can be shared out
    as_it_is, one_thread, in_halves, in_thirds = (0, CORES, CORES), (0, CORES, 1), (2, halves, 1), (3, thirds, 1)
    if quick:
        compare(16, 32, [as_it_is, one_thread, in_halves, in_thirds], rounds=1)
        return
    others = [(2, halves, CORES), (2, 2 * halves, 1)]
    compare(64, 64, [as_it_is, one_thread, in_halves, in_thirds, *others], rounds=3)
    compare(256, 16, [as_it_is, one_thread, in_halves], rounds=2)


if __name__ == "__main__":
    {"rollout": serve, "update": serve_update}[sys.argv[1]](*sys.argv[2:])
