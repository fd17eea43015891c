"""Episodes as they are played: what the agent saw, did and thought, and the states to return to."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.agent.observations import joined, pick
from dae.agent.ppo import is_truncated
from dae.envs import Family
from dae.envs.restoring import Restorable
from dae.experiments.explore.pictures import PictureBook
from dae.experiments.playing import Numbers, Step, probabilities_of, steps_of_an_episode, values_of
from dae.explorer.data import Episode, Segment

_AT_ONCE = 512  # states that the network looks at


@dataclass(frozen=True)
class Played:
    """An episode, and the state before each of its steps, if environments can be restored."""

    episode: Episode
    states: list[bytes]


def play_episode(
    model: PPO,
    family: Family,
    env: VecEnv,
    restorer: Restorable | None,
    *,
    seed: int,
    greedy: bool,
    longest: int,
    drawn: bool,
    watch: Callable[[int], None] = lambda steps: None,
) -> Played:
    """Play until the game is over, or for `longest` steps, in the only environment of `env`."""
    book, states = PictureBook(family.cell_size), list[bytes]()

    def look() -> None:
        if drawn:
            book.add(family.draw(env))
        if restorer is not None:
            states.extend(restorer.take_states([0]))

    env.seed(seed)
    steps = []
    for step in steps_of_an_episode(model, env, greedy=greedy, longest=longest, look=look):
        steps.append(step)
        watch(len(steps))
    if step.over and drawn and (last := family.draw_last(env, step.info.get("terminal_observation"))) is not None:
        book.add(last)
    values, probabilities, advantages = _thoughts(model, steps)
    return Played(
        Episode(
            seed=seed,
            score=step.score,
            ended=step.over,
            actions=np.array([int(step.action) for step in steps]),
            rewards=np.array([step.reward for step in steps]),
            scores=np.array([step.score for step in steps]),
            values=values,
            probabilities=probabilities,
            advantages=advantages,
            segments=_segments(model, steps),
            picture=book.bound(),
            truths=[],
        ),
        states,
    )


def _thoughts(model: PPO, steps: list[Step[None]]) -> tuple[Numbers, Numbers, Numbers | None]:
    """Return V̂(s), π(·|s), and Â(s, ·) if the agent models it, of all steps."""
    parts = []
    for begin in range(0, len(steps), _AT_ONCE):
        piece = steps[begin : begin + _AT_ONCE]
        seen = joined([step.observations for step in piece])
        masks = [step.masks for step in piece if step.masks is not None]
        allowed = np.concatenate(masks) if masks else None
        if model.estimator.info.models_all_actions:
            credit = model.advantages(seen, allowed)
            parts.append((credit.values, credit.probabilities, _of_allowed(credit.advantages, allowed)))
        else:
            nothing = np.zeros((0, 0), np.float32)
            parts.append((values_of(model, seen), probabilities_of(model, seen, allowed), nothing))
    values, probabilities, advantages = (np.concatenate(column) for column in zip(*parts, strict=True))
    return values, probabilities, advantages if len(advantages) else None


def _of_allowed(advantages: Numbers, allowed: NDArray[np.bool_] | None) -> Numbers:
    """Give forbidden actions the value of the worst allowed one, so that they are neither best nor at stake."""
    if allowed is None:
        return advantages
    worst = np.where(allowed, advantages, np.inf).min(1, keepdims=True)
    return np.where(allowed, advantages, worst)


def _segments(model: PPO, steps: list[Step[None]]) -> list[Segment]:
    """Return where learning began anew; what was cut there, or is not shown, bootstraps."""
    segments, start = [], 0
    for t, step in enumerate(steps):
        if not step.done and t + 1 < len(steps):
            continue
        cut = None if step.done else pick(step.following, 0)
        if step.done and is_truncated(step.info):
            cut = step.info["terminal_observation"]
        bootstrap = 0.0 if cut is None else float(values_of(model, cut)[0])
        segments.append(Segment(start, t + 1, cut is None, bootstrap))
        start = t + 1
    return segments
