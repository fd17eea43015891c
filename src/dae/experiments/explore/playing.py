"""Episodes as they are played: what the agent saw, did and thought, and the states to return to."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.agent.ppo import is_truncated
from dae.envs import Family
from dae.envs.restoring import Restorable
from dae.experiments.explore.pictures import PictureBook
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
    read_masks = model.mask_reader(env)
    env.seed(seed)
    seen = env.reset()
    observations, masks, states = list[Any](), list[Any](), list[bytes]()
    actions, rewards, scores = list[int](), list[float](), list[float]()
    ends: list[tuple[int, Any]] = []  # where learning began anew, and what was seen last if that was cut
    book, score, over = PictureBook(family.cell_size), 0.0, False
    while not over and len(actions) < longest:
        allowed = read_masks()
        action, _ = model.predict(seen, deterministic=greedy, action_masks=allowed)  # type: ignore[arg-type]
        observations.append(copy.deepcopy(seen))
        masks.append(allowed)
        if drawn:
            book.add(family.draw(env))
        if restorer is not None:
            states += restorer.take_states([0])
        seen, reward, done, infos = env.step(action)
        score += float(infos[0].get("raw_reward", reward[0]))
        over = "episode" in infos[0]
        score = float(infos[0]["episode"]["r"]) if over else score
        actions.append(int(action[0]))
        rewards.append(float(reward[0]))
        scores.append(score)
        if done[0]:
            ends.append((len(actions), infos[0]["terminal_observation"] if is_truncated(infos[0]) else None))
        watch(len(actions))
    if not ends or ends[-1][0] < len(actions):
        ends.append((len(actions), _of_first(seen)))
    if over and drawn and (last := family.draw_last(env, infos[0].get("terminal_observation"))) is not None:
        book.add(last)
    values, probabilities, advantages = _thoughts(model, observations, masks)
    return Played(
        Episode(
            seed=seed,
            score=score,
            ended=over,
            actions=np.array(actions),
            rewards=np.array(rewards),
            scores=np.array(scores),
            values=values,
            probabilities=probabilities,
            advantages=advantages,
            segments=_segments(model, ends),
            picture=book.bound(),
            truths=[],
        ),
        states,
    )


Numbers = NDArray[np.float32]


def _thoughts(
    model: PPO, observations: list[Any], masks: list[NDArray[np.bool_] | None]
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Return V̂(s), π(·|s), and Â(s, ·) if the agent models it, of all steps."""
    parts = []
    for begin in range(0, len(observations), _AT_ONCE):
        seen = _together(observations[begin : begin + _AT_ONCE])
        allowed = None
        if masks[0] is not None:
            allowed = np.concatenate([mask for mask in masks[begin : begin + _AT_ONCE] if mask is not None])
        if model.estimator.info.models_all_actions:
            credit = model.advantages(seen, allowed)
            parts.append((credit.values, credit.probabilities, _of_allowed(credit.advantages, allowed)))
        else:
            values, probabilities = _values_and_probabilities(model, seen, allowed)
            parts.append((values, probabilities, np.zeros((0, 0), np.float32)))
    values, probabilities, advantages = (np.concatenate(column) for column in zip(*parts, strict=True))
    return values, probabilities, advantages if len(advantages) else None


def _of_allowed(advantages: Numbers, allowed: NDArray[np.bool_] | None) -> Numbers:
    """Give forbidden actions the value of the worst allowed one, so that they are neither best nor at stake."""
    if allowed is None:
        return advantages
    worst = np.where(allowed, advantages, np.inf).min(1, keepdims=True)
    return np.where(allowed, advantages, worst)


def _values_and_probabilities(
    model: PPO, observations: Any, masks: NDArray[np.bool_] | None
) -> tuple[Numbers, Numbers]:
    model.policy.set_training_mode(False)
    with torch.no_grad():
        tensors, _ = model.policy.obs_to_tensor(observations)
        allowed = None if masks is None else torch.from_numpy(masks).to(model.device)
        probabilities = model.policy.log_probs(tensors, allowed).exp()
        return model.policy.predict_values(tensors).flatten().cpu().numpy(), probabilities.cpu().numpy()


def _segments(model: PPO, ends: list[tuple[int, Any]]) -> list[Segment]:
    segments, start = [], 0
    for end, seen in ends:
        bootstrap = 0.0
        if seen is not None:
            with torch.no_grad():
                bootstrap = float(model.policy.predict_values(model.policy.obs_to_tensor(seen)[0]))
        segments.append(Segment(start, end, seen is None, bootstrap))
        start = end
    return segments


def _of_first(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: part[0] for name, part in observations.items()}
    return observations[0]


def _together(observations: list[Any]) -> Any:
    if isinstance(observations[0], dict):
        return {name: np.concatenate([seen[name] for seen in observations]) for name in observations[0]}
    return np.concatenate(observations)
