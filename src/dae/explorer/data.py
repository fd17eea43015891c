"""What a page of the credit explorer shows, how it becomes JSON, and its rows as a table.

T is the number of an episode's steps, A the number of actions.
"""

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dae.errors import InvalidValue
from dae.explorer.credit import Credit, credit_of, decompose


@dataclass(frozen=True)
class Segment:
    """From one start of learning to the next: an episode, or one life of an Atari game."""

    start: int  # first step
    end: int  # one after the last
    terminated: bool  # else it was cut (time limit, or the longest that is shown), and `bootstrap` stands for the rest
    bootstrap: float  # V̂ of the state after the last step where it was cut; 0 where it terminated


@dataclass(frozen=True)
class Grid:
    """Pictures of few colours, drawn crisply at any size."""

    palette: list[str]  # "#rrggbb"
    cells: NDArray[np.uint8]  # (T or T + 1, height, width), indices into the palette; the last state may have one too


@dataclass(frozen=True)
class Images:
    """Pictures of any kind, each kept once."""

    kind: str  # "image/webp"
    size: tuple[int, int]  # width, height
    images: list[bytes]
    index: NDArray[np.int32]  # (T or T + 1,): which image a step shows


@dataclass(frozen=True)
class Truth:
    """Monte-Carlo counterfactuals of one step: each action in the restored state, then the policy."""

    step: int
    q: NDArray[np.float64]  # (A,)
    q_error: NDArray[np.float64]  # (A,), standard errors; not a number where it is not known
    advantages: NDArray[np.float64]  # (A,)
    errors: NDArray[np.float64]  # (A,), of the advantages
    value: float
    value_error: float
    rollouts: int  # of each action
    horizon: int  # steps of a rollout
    cut: float = 0.0  # share of the rollouts that were cut there


@dataclass(frozen=True)
class Episode:
    """An episode as the agent played it, and what the agent's networks said at each step."""

    seed: int
    score: float  # of the game, raw
    ended: bool  # False: only its beginning is shown
    actions: NDArray[np.int64]  # (T,)
    rewards: NDArray[np.float64]  # (T,), as the agent learns from them
    scores: NDArray[np.float64]  # (T,), running score of the game after each step
    values: NDArray[np.float32]  # (T,), V̂(s_t)
    probabilities: NDArray[np.float32]  # (T, A)
    advantages: NDArray[np.float32] | None  # (T, A), Â(s_t, ·); None: not available
    segments: list[Segment]  # one after the other, from the first step to the last
    picture: Grid | Images | None = None
    truths: list[Truth] = field(default_factory=list)

    def __post_init__(self) -> None:
        steps, actions = self.actions.size, self.probabilities.shape[-1]
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("actions", "rewards", "scores", "values"), (steps,))
        shapes |= {"probabilities": (steps, actions)} | (
            {} if self.advantages is None else {"advantages": (steps, actions)}
        )
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape:
                raise InvalidValue(f"{name} has shape {array.shape}; for {steps} actions it must be {shape}")
            if not np.isfinite(array).all():
                raise InvalidValue(f"{name} has values that are not finite; this episode cannot be explored")
        borders = [0, *(segment.end for segment in self.segments)]
        if not steps or borders[:-1] != [segment.start for segment in self.segments] or borders[-1] != steps:
            spans = ", ".join(f"{segment.start}:{segment.end}" for segment in self.segments)
            raise InvalidValue(f"segments {spans or '(none)'} do not cover the {steps} steps one after the other")
        if self.actions.min() < 0 or self.actions.max() >= actions:
            raise InvalidValue(f"actions go from {self.actions.min()} to {self.actions.max()}; there are {actions}")


@dataclass(frozen=True)
class Exploration:
    """A trained agent and some of its episodes."""

    env: str
    run: str
    advantage: str  # the estimator's name
    label: str  # the estimator as people know it, such as "DAE"
    source: Literal["network", "look-ahead"] | None  # where Â comes from; None: there are no advantages
    gamma: float
    frames: int  # of training
    greedy: bool  # False: actions are drawn from the policy
    action_names: list[str]
    command: str  # that made the page
    version: str
    episodes: list[Episode]  # in any order

    def __post_init__(self) -> None:
        if not self.episodes:
            raise InvalidValue("there are no episodes; a page needs at least one")
        for episode in self.episodes:
            if episode.probabilities.shape[1] != len(self.action_names):
                raise InvalidValue(
                    f"there are {len(self.action_names)} names for {episode.probabilities.shape[1]} actions"
                )
            if (episode.advantages is None) != (self.source is None):
                raise InvalidValue(f"source={self.source!r}: it is None exactly where episodes have no advantages")


def to_json(exploration: Exploration, *, packed: bool = False) -> dict[str, Any]:
    """Return an exploration as JSON: with plain lists to read, or `packed` as the page needs it.

    The packed one has arrays as base64 and the pictures; the readable one has the credit of each step as well.
    """
    about = {
        name: getattr(exploration, name)
        for name in ("env", "run", "advantage", "label", "source", "gamma", "frames", "greedy")
    }
    about |= {"action_names": list(exploration.action_names)}
    about |= {"command": exploration.command, "version": exploration.version}
    write = _packed_episode if packed else _readable_episode
    return about | {"episodes": [write(episode, exploration.gamma) for episode in exploration.episodes]}


def csv_rows(exploration: Exploration) -> Iterator[list[str | int | float]]:
    """Give the head and then a row for each step of each episode."""
    names = exploration.action_names
    known = exploration.source is not None
    yield [
        *("episode", "seed", "step", "segment", "action", "action_name", "reward", "score", "value"),
        *(f"probability {name}" for name in names),
        *((f"advantage {name}" for name in names) if known else ()),
        *(("advantage", "luck", "best", "cost", "stakes") if known else ("luck",)),
        "cumulative",
    ]
    for place, episode in enumerate(exploration.episodes):
        credit = credit_of(episode, exploration.gamma)
        for number, segment in enumerate(episode.segments):
            for step in range(segment.start, segment.end):
                yield [
                    *(place, episode.seed, step, number),
                    *(int(episode.actions[step]), names[episode.actions[step]]),
                    *(float(episode.rewards[step]), float(episode.scores[step]), _short(episode.values[step])),
                    *map(_short, episode.probabilities[step]),
                    *_credit_cells(episode, credit, step),
                    float(credit.cumulative[step]),
                ]


def _credit_cells(episode: Episode, credit: Credit, step: int) -> Iterator[int | float]:
    if episode.advantages is None or credit.of_choice is None:
        yield float(credit.luck[step])
        return
    yield from map(_short, episode.advantages[step])
    yield _short(episode.advantages[step, episode.actions[step]])
    yield float(credit.luck[step])
    yield int(credit.best[step])
    yield float(credit.costs[step])
    yield float(credit.stakes[step])


def _readable_episode(episode: Episode, gamma: float) -> dict[str, Any]:
    """The numbers in plain lists; pictures are left out, nobody reads them."""
    credit = credit_of(episode, gamma)
    choices = {
        "advantages": None if episode.advantages is None else [list(map(_short, row)) for row in episode.advantages],
        "luck": credit.luck.tolist(),
        "cumulative": credit.cumulative.tolist(),
    }
    if credit.of_choice is not None:
        choices |= {"best": credit.best.tolist(), "costs": credit.costs.tolist(), "stakes": credit.stakes.tolist()}
    return {
        "seed": episode.seed,
        "score": episode.score,
        "ended": episode.ended,
        "actions": episode.actions.tolist(),
        "rewards": episode.rewards.tolist(),
        "scores": episode.scores.tolist(),
        "values": list(map(_short, episode.values)),
        "probabilities": [list(map(_short, row)) for row in episode.probabilities],
        **choices,
        "segments": [
            _segment(segment) | {"return": decompose(episode, gamma, segment).total} for segment in episode.segments
        ],
        "truths": [_truth(truth) for truth in episode.truths],
    }


def _packed_episode(episode: Episode, _gamma: float) -> dict[str, Any]:
    """Without what the page computes itself."""
    return {
        "seed": episode.seed,
        "score": episode.score,
        "ended": episode.ended,
        "actions": _packed(episode.actions, "int32"),
        "rewards": _packed(episode.rewards, "float64"),
        "scores": _packed(episode.scores, "float64"),
        "values": _packed(episode.values, "float32"),
        "probabilities": _packed(episode.probabilities, "float32"),
        "advantages": None if episode.advantages is None else _packed(episode.advantages, "float32"),
        "segments": [_segment(segment) for segment in episode.segments],
        "picture": _picture(episode.picture),
        "truths": [_truth(truth) for truth in episode.truths],
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "start": int(segment.start),
        "end": int(segment.end),
        "terminated": bool(segment.terminated),
        "bootstrap": float(segment.bootstrap),
    }


def _truth(truth: Truth) -> dict[str, Any]:
    lists = {name: [_or_none(x) for x in getattr(truth, name)] for name in ("q", "q_error", "advantages", "errors")}
    return {
        "step": int(truth.step),
        **lists,
        "value": _or_none(truth.value),
        "value_error": _or_none(truth.value_error),
        "rollouts": int(truth.rollouts),
        "horizon": int(truth.horizon),
        "cut": float(truth.cut),
    }


def _picture(picture: Grid | Images | None) -> dict[str, Any] | None:
    if isinstance(picture, Grid):
        return {"type": "grid", "palette": list(picture.palette), "cells": _packed(picture.cells, "uint8")}
    if isinstance(picture, Images):
        return {
            "type": "images",
            "kind": picture.kind,
            "size": list(picture.size),
            "images": [base64.b64encode(image).decode() for image in picture.images],
            "index": _packed(picture.index, "int32"),
        }
    return None


def _packed(array: NDArray[Any], kind: str) -> dict[str, Any]:
    """An array as base64 of its little-endian bytes, which a page can read as they are."""
    content = np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<")).tobytes()
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(content).decode()}


def _short(number: np.float32) -> float:
    """The shortest decimal that stands for a number of the network: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(number)))


def _or_none(number: float) -> float | None:
    """JSON has no word for what is not a number."""
    return float(number) if math.isfinite(number) else None
