"""What if: other actions in states that were met, by looking one step ahead, or by playing on many times."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dae.agent.ppo import is_truncated
from dae.experiments.explore.playing import Played
from dae.experiments.monte_carlo import Simulator, action_values
from dae.experiments.playing import values_of
from dae.explorer.data import Episode, Truth

_SAMPLES = 4  # of what the environment may do in one step
_APART = 4  # steps between two decisions that are looked into: those before and after tell the same story


def look_ahead(
    simulator: Simulator,
    played: Played,
    gamma: float,
    seed: int,
    watch: Callable[[int], None] = lambda steps: None,
) -> NDArray[np.float32]:
    """Return A(s, a) = Q(s, a) − Σ_a π(a|s) Q(s, a), (T, A), with Q = r + γ V̂(s') after one step of each action."""
    shape = (len(played.states), simulator.n_actions, _SAMPLES)
    starts, actions, _ = (index.ravel() for index in np.indices(shape))
    q = np.zeros(starts.size)
    for begin in range(0, starts.size, simulator.n_slots):
        chosen = np.arange(begin, min(begin + simulator.n_slots, starts.size))
        slots = range(len(chosen))
        seeds = np.random.default_rng([seed, begin]).integers(2**63, size=len(chosen)).tolist()
        simulator.put([played.states[i] for i in starts[chosen]], slots, seeds)
        doing = np.zeros(simulator.n_slots, np.int64)
        doing[: len(chosen)] = actions[chosen]
        seen, rewards, dones, infos = simulator.env.step(doing)
        following = values_of(simulator.model, seen)
        for i in np.flatnonzero(dones[: len(chosen)]):
            cut = is_truncated(infos[i])
            following[i] = values_of(simulator.model, infos[i]["terminal_observation"])[0] if cut else 0.0
        q[chosen] = (rewards + gamma * following)[: len(chosen)]
        watch(int(starts[chosen[-1]] - (starts[chosen[0]] if begin else -1)))
    means = q.reshape(shape).mean(-1)
    return np.asarray(means - (played.episode.probabilities * means).sum(-1, keepdims=True), np.float32)


def decisions_to_check(episodes: Sequence[Episode], most: int) -> list[tuple[int, int]]:
    """Return decisions as (episode, step): in turn the largest mistake, gain, and preference for another action."""
    kinds: list[list[tuple[float, int, int]]] = [[], [], []]
    for k, episode in enumerate(episodes):
        if episode.advantages is None:
            continue
        taken = np.take_along_axis(episode.advantages, episode.actions[:, None], 1)[:, 0]
        for found, size in zip(kinds, (-taken, taken, episode.advantages.max(1) - taken), strict=True):
            found += [(-float(size[t]), k, int(t)) for t in np.flatnonzero(size > 0)]
    chosen: list[tuple[int, int]] = []
    turns = [iter(sorted(found)) for found in kinds]
    while turns and len(chosen) < most:
        turn = turns.pop(0)
        for _, k, t in turn:
            if all(k != other or abs(t - step) >= _APART for other, step in chosen):
                chosen.append((k, t))
                turns.append(turn)
                break
    return sorted(chosen)


def ask(
    simulator: Simulator,
    played: Sequence[Played],
    decisions: Sequence[tuple[int, int]],
    *,
    rollouts: int,
    horizon: int,
    gamma: float,
    seed: int,
    watch: Callable[[int], None],
) -> dict[int, list[Truth]]:
    """Return what really follows from each action, for each decision, by episode."""
    truths: dict[int, list[Truth]] = {}
    if not decisions:
        return truths
    values = action_values(
        simulator,
        [played[k].states[t] for k, t in decisions],
        rollouts=rollouts,
        horizon=horizon,
        gamma=gamma,
        seed=seed,
        share_among_actions=True,
        watch=watch,
    )
    for i, (k, t) in enumerate(decisions):
        truth = Truth(
            step=t,
            q=values.q.mean[i],
            q_error=values.q.error[i],
            advantages=values.advantages.mean[i],
            errors=values.advantages.error[i],
            value=float(values.v.mean[i]),
            value_error=float(values.v.error[i]),
            rollouts=rollouts,
            horizon=horizon,
            cut=float(values.cut[i].mean()),
        )
        truths.setdefault(k, []).append(truth)
    return truths
