"""An episode as it is played: pictures, scores, and what the agent thought; a long one is thinned out meanwhile."""

import zlib
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs import Family
from dae.experiments.playing import Step, probabilities_of, steps_of_an_episode, values_of

Item = TypeVar("Item")
LARGEST = (480, 360)  # width and height of a picture in a film


@dataclass(frozen=True)
class Still:
    """A picture at the size of the film, compressed, because a film has hundreds of them."""

    size: tuple[int, int]
    content: bytes

    @staticmethod
    def of(picture: NDArray[np.uint8]) -> "Still":
        """Keep a picture (height, width, 3)."""
        image = Image.fromarray(picture)
        scale = min(LARGEST[0] / image.width, LARGEST[1] / image.height)
        size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        # Cells of a small picture stay crisp; a large one keeps its thin lines.
        image = image.resize(size, Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.BOX)
        return Still(size, zlib.compress(image.tobytes(), level=1))

    def image(self) -> Image.Image:
        return Image.frombytes("RGB", self.size, zlib.decompress(self.content))


@dataclass(frozen=True)
class Thought:
    """What the agent thought of a state, and what it did."""

    value: float
    probabilities: NDArray[np.float32] | None  # π(·|s); None: actions are not single numbers
    advantages: NDArray[np.float32] | None  # Â(s, ·); None: not modelled
    action: NDArray[Any]


@dataclass(frozen=True)
class Moment:
    """A state in which the agent acted."""

    step: int  # the first is 1
    still: Still
    score: float  # before the step
    thought: Thought


@dataclass(frozen=True)
class Episode:
    """An episode, or the beginning of one that does not end."""

    moments: list[Moment]  # of every `stride`-th step, and of the last
    names: list[str]  # of the actions, if they are single numbers
    steps: int
    score: float
    stride: int
    ended: bool
    last: Still | None = None  # the state in which it ended, if that can be drawn


class Thinned(Generic[Item]):
    """At most so many items, evenly from all that come: every `stride`-th, which doubles when there is no more room."""

    def __init__(self, most: int) -> None:
        self.items: list[Item] = []
        self.stride = 1
        self._most = most

    def keeps(self, index: int) -> bool:
        """Say whether the item with this index is one to add; indices come in order, from 0."""
        if index % self.stride == 0 and len(self.items) == self._most:
            self.items = self.items[::2]
            self.stride *= 2
        return index % self.stride == 0


def play_episode(model: PPO, family: Family, env: VecEnv, *, greedy: bool, longest: int, most_moments: int) -> Episode:
    """Play until the episode ends, or for `longest` steps."""
    names = family.action_names(env)
    kept: Thinned[Moment] = Thinned(most_moments)
    before = 0.0  # the score
    for index, step in enumerate(
        steps_of_an_episode(model, env, greedy=greedy, longest=longest, look=lambda: family.draw(env).copy())
    ):
        if kept.keeps(index):
            kept.items.append(_moment(model, index + 1, step, before, enumerable=bool(names)))
        shown, before = before, step.score
    moments = kept.items
    if moments[-1].step != index + 1:
        moments = [*moments, _moment(model, index + 1, step, shown, enumerable=bool(names))]
    last = family.draw_last(env, step.info.get("terminal_observation")) if step.over else None
    still = None if last is None else Still.of(last)
    return Episode(moments, names, index + 1, step.score, kept.stride, step.over, still)


def _moment(model: PPO, number: int, step: Step[NDArray[np.uint8]], score: float, *, enumerable: bool) -> Moment:
    return Moment(number, Still.of(step.looked), score, _think(model, step, enumerable=enumerable))


def _think(model: PPO, step: Step[NDArray[np.uint8]], *, enumerable: bool) -> Thought:
    seen, masks, taken = step.observations, step.masks, np.array(step.action)
    if enumerable and model.estimator.info.models_all_actions:
        credit = model.advantages(seen, masks)
        return Thought(float(credit.values[0]), credit.probabilities[0], credit.advantages[0], taken)
    probabilities = probabilities_of(model, seen, masks)[0] if enumerable else None
    return Thought(float(values_of(model, seen)[0]), probabilities, None, taken)
