"""An episode as it is played: pictures, scores, and what the agent thought; a long one is thinned out meanwhile."""

import copy
import zlib
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs import Family

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


@dataclass(frozen=True)
class _Look:
    """A state in which the agent acted, before anything is made of it."""

    step: int
    picture: NDArray[np.uint8]
    score: float
    observations: Any
    masks: NDArray[np.bool_] | None
    action: Any


def play_episode(model: PPO, family: Family, env: VecEnv, *, greedy: bool, longest: int, most_moments: int) -> Episode:
    """Play until the episode ends, or for `longest` steps."""
    names = family.action_names(env)
    read_masks = model.mask_reader(env)
    observations = env.reset()
    kept: Thinned[Moment] = Thinned(most_moments)
    step, score, ended = 0, 0.0, False
    while not ended and step < longest:
        masks = read_masks()
        action, _ = model.predict(observations, deterministic=greedy, action_masks=masks)  # type: ignore[arg-type]
        # Also of steps that are not kept: this may be the last one, and the next picture is of another episode.
        look = _Look(step + 1, family.draw(env), score, copy.deepcopy(observations), masks, action[0])
        if kept.keeps(step):
            kept.items.append(_moment(model, look, enumerable=bool(names)))
        observations, rewards, _, infos = env.step(action)
        # A life ends for learning, but not the game; and the rewards of the game may differ from those for learning.
        step, ended = step + 1, "episode" in infos[0]
        score += float(infos[0].get("raw_reward", rewards[0]))
    score = float(infos[0]["episode"]["r"]) if ended else score
    moments = kept.items
    if moments[-1].step != step:
        moments = [*moments, _moment(model, look, enumerable=bool(names))]
    last = family.draw_last(env, infos[0].get("terminal_observation")) if ended else None
    return Episode(moments, names, step, score, kept.stride, ended, None if last is None else Still.of(last))


def _moment(model: PPO, look: _Look, *, enumerable: bool) -> Moment:
    thought = _think(model, look.observations, look.masks, look.action, enumerable=enumerable)
    return Moment(look.step, Still.of(look.picture), look.score, thought)


def _think(model: PPO, observations: Any, masks: NDArray[np.bool_] | None, action: Any, *, enumerable: bool) -> Thought:
    taken = np.array(action)
    if enumerable and model.estimator.info.models_all_actions:
        credit = model.advantages(observations, masks)
        return Thought(float(credit.values[0]), credit.probabilities[0], credit.advantages[0], taken)
    model.policy.set_training_mode(False)
    with torch.no_grad():
        tensors = model.policy.obs_to_tensor(observations)[0]
        value = float(model.policy.predict_values(tensors))
        distribution = model.policy.get_distribution(tensors).distribution
    if not enumerable:
        return Thought(value, None, None, taken)
    probabilities = distribution.probs[0].cpu().numpy()  # type: ignore[union-attr]
    if masks is not None:
        probabilities = probabilities * masks[0] / (probabilities * masks[0]).sum()
    return Thought(value, probabilities, None, taken)
