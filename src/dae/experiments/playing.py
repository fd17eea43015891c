"""An episode of a trained agent, step by step: for films and for the explorer."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO

Look = TypeVar("Look")
Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Step(Generic[Look]):
    """What the agent saw and did, and what came of it."""

    observations: Any  # before the step, of the only environment
    masks: NDArray[np.bool_] | None
    action: Any
    looked: Look  # what was looked at before the step: after the last one the environment shows another episode
    reward: float  # as the agent learns from it
    done: bool  # for learning: the episode, or a life
    info: dict[str, Any]
    score: float  # of the game, after the step
    over: bool  # the game
    following: Any  # observations after the last of `longest` steps, else None


def steps_of_an_episode(
    model: PPO, env: VecEnv, *, greedy: bool, longest: int, look: Callable[[], Look]
) -> Iterator[Step[Look]]:
    """Play from a reset until the game is over, or for `longest` steps, in the only environment of `env`."""
    read_masks = model.mask_reader(env)
    seen, score = env.reset(), 0.0
    for number in range(1, longest + 1):
        masks = read_masks()
        action, _ = model.predict(seen, deterministic=greedy, action_masks=masks)  # type: ignore[arg-type]
        before, looked = copy.deepcopy(seen), look()
        seen, rewards, dones, infos = env.step(action)
        # A life ends for learning, but not the game; and the rewards of the game may differ from those for learning.
        over = "episode" in infos[0]
        score = float(infos[0]["episode"]["r"]) if over else score + float(infos[0].get("raw_reward", rewards[0]))
        following = seen if number == longest else None
        reward, done = float(rewards[0]), bool(dones[0])
        yield Step(before, masks, action[0], looked, reward, done, infos[0], score, over, following)
        if over:
            return


def values_of(model: PPO, observations: Any) -> Numbers:
    """Return V̂(s), (N,)."""
    model.policy.set_training_mode(False)
    with torch.no_grad():
        values = model.policy.predict_values(model.policy.obs_to_tensor(observations)[0])
    return np.asarray(values.flatten().cpu())


def probabilities_of(model: PPO, observations: Any, masks: NDArray[np.bool_] | None) -> Numbers:
    """Return π(·|s), (N, A), of actions that are single numbers, also of a policy that acts in its own way."""
    model.policy.set_training_mode(False)
    with torch.no_grad():
        distribution = model.policy.get_distribution(model.policy.obs_to_tensor(observations)[0]).distribution
    probabilities = np.asarray(distribution.probs.cpu())  # type: ignore[union-attr]
    if masks is not None:
        probabilities = probabilities * masks / (probabilities * masks).sum(-1, keepdims=True)
    return probabilities
