"""Actions that are made of several choices, and actions that are not always allowed: against enumeration."""

from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

import dae
from dae.agent.actions import Choices
from tests.agent.worlds import Spaces

BOX = spaces.Box(-1, 1, (3,))
SEVERAL = {
    "discrete": spaces.Discrete(4),
    "multi-discrete": spaces.MultiDiscrete([2, 3, 2]),
    "two-dimensional": spaces.MultiDiscrete([[2, 3], [2, 2]]),
    "multi-binary": spaces.MultiBinary(3),
}


def numbers(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def all_actions(choices: Choices) -> torch.Tensor:
    return torch.tensor(list(product(*(range(size) for size in choices.sizes))))


@pytest.mark.parametrize("space", SEVERAL.values(), ids=SEVERAL)
def test_choice_by_choice_is_the_same_as_over_all_actions(space: Any) -> None:
    """Centring, probabilities, second moments and entropy, each as a sum over every action."""
    choices = Choices.of(space)
    assert choices is not None
    f, logits = numbers((choices.total,), 0), numbers((choices.total,), 1)
    log_probs = choices.log_softmax(logits)
    every = all_actions(choices)
    joint = torch.stack([choices.taken(log_probs, action) for action in every])
    torch.testing.assert_close(joint.exp().sum(), torch.tensor(1.0, dtype=torch.float64))
    centred = choices.center(f, log_probs.exp())
    advantages = torch.stack([choices.taken(centred, action) for action in every])
    whole = torch.stack([choices.taken(f, action) for action in every])
    torch.testing.assert_close(advantages, whole - (joint.exp() * whole).sum())
    torch.testing.assert_close((log_probs.exp() * centred**2).sum(), (joint.exp() * advantages**2).sum())
    torch.testing.assert_close(dae.core.entropy(log_probs), -(joint.exp() * joint).sum())
    other = choices.log_softmax(numbers((choices.total,), 2))
    others = torch.stack([choices.taken(other, action) for action in every])
    torch.testing.assert_close(
        dae.core.kl_divergence(other, old_log_probs=log_probs), (joint.exp() * (joint - others)).sum()
    )


def test_samples_follow_the_probabilities() -> None:
    choices = Choices((2, 3))
    log_probs = choices.log_softmax(numbers((5,), 3))
    torch.manual_seed(0)
    drawn = choices.sample(log_probs.expand(40_000, -1))
    for action in all_actions(choices):
        share = (drawn == action).all(-1).double().mean()
        assert abs(share - choices.taken(log_probs, action).exp()) < 0.01
    assert choices.taken(log_probs, choices.sample(log_probs[None], deterministic=True)[0]) == max(
        choices.taken(log_probs, action) for action in all_actions(choices)
    )


class Lights(gym.Env[np.ndarray, np.ndarray]):
    """Three independent switches; the reward is a sum over switches, and so is every advantage."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    worth = ((0.0, 1.0), (0.5, 0.0), (0.0, 0.2))

    def __init__(self, actions: spaces.Space[Any]) -> None:
        self.action_space = actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = sum(of_switch[int(chosen)] for of_switch, chosen in zip(self.worth, action, strict=True))
        return np.ones(1, np.float32), reward, True, False, {}


@pytest.mark.parametrize("actions", [spaces.MultiDiscrete([2, 2, 2]), spaces.MultiBinary(3)], ids=str)
def test_the_true_advantages_of_several_choices_are_learned(actions: spaces.Space[Any]) -> None:
    """With a policy that stays (learning rate of the critic only), Â of each switch is its own worth, centred."""
    model = dae.PPO(
        "MlpPolicy", make_vec_env(lambda: Lights(actions), 8), n_steps=64, batch_size=512, learning_rate=0.01, seed=0
    )
    for parameter in (*model.policy.action_net.parameters(), *model.policy.mlp_extractor.policy_net.parameters()):
        parameter.requires_grad_(False)
    model.learn(15_000)
    credit = model.advantages(np.ones((1, 1), np.float32))
    worth, probs = np.array(Lights.worth), credit.probabilities.reshape(3, 2)
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)
    expected = worth - (probs * worth).sum(1, keepdims=True)
    np.testing.assert_allclose(credit.advantages.reshape(3, 2), expected, atol=0.03)
    assert credit.values[0] == pytest.approx((probs * worth).sum(), abs=0.05)


@pytest.mark.parametrize("advantage", ["dae", "duel", "gae"])
@pytest.mark.parametrize("actions", [spaces.MultiDiscrete([2, 2, 2]), spaces.MultiBinary(3)], ids=str)
def test_the_best_of_several_choices_is_found(actions: spaces.Space[Any], advantage: str) -> None:
    env = make_vec_env(lambda: Lights(actions), 8)
    model = dae.PPO("MlpPolicy", env, advantage=advantage, n_steps=32, learning_rate=0.01, seed=0).learn(6_000)
    action, _ = model.predict(np.ones(1, np.float32), deterministic=True)
    assert action.tolist() == [1, 0, 1]


class Masked(gym.Env[np.ndarray, int]):
    """Two steps; which actions are allowed depends on the state. A forbidden action is an error."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(3)
    allowed = np.array([[True, False, True], [False, True, True]])
    rewards = np.array([[0.0, 100.0, 1.0], [100.0, 1.0, 0.0]])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = 0
        return np.eye(2, dtype=np.float32)[0], {}

    def action_masks(self) -> np.ndarray:
        """By sb3-contrib's convention."""
        return self.allowed[self.state]

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.allowed[self.state, action], "a forbidden action"
        reward, last = float(self.rewards[self.state, action]), self.state == 1
        self.state = 1 - self.state
        return np.eye(2, dtype=np.float32)[self.state], reward, last, False, {}


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_forbidden_actions_are_never_taken_and_the_best_allowed_ones_are_found(advantage: str) -> None:
    env = make_vec_env(Masked, 4)
    model = dae.PPO("MlpPolicy", env, advantage=advantage, n_steps=32, learning_rate=0.01, seed=0).learn(4_000)
    states = np.eye(2, dtype=np.float32)
    best, _ = model.predict(states, deterministic=True, action_masks=Masked.allowed)
    assert best.tolist() == [2, 1]
    drawn = [model.predict(states[0], action_masks=Masked.allowed[0])[0].item() for _ in range(50)]
    assert set(drawn) <= {0, 2}


def test_advantages_are_centred_over_the_allowed_actions() -> None:
    """Against enumeration: A(s, a) = r(s, a) − Σ over allowed a' of π(a'|s) r(s, a')."""
    model = dae.PPO("MlpPolicy", make_vec_env(Masked, 4), n_steps=64, batch_size=256, learning_rate=0.01, seed=0)
    for parameter in (*model.policy.action_net.parameters(), *model.policy.mlp_extractor.policy_net.parameters()):
        parameter.requires_grad_(False)
    model.learn(15_000)
    credit = model.advantages(np.eye(2, dtype=np.float32), Masked.allowed)
    assert (credit.probabilities[~Masked.allowed] == 0).all()
    np.testing.assert_allclose(credit.probabilities.sum(1), 1, atol=1e-6)
    expected = Masked.rewards - (credit.probabilities * Masked.rewards).sum(1, keepdims=True)
    np.testing.assert_allclose(credit.advantages[Masked.allowed], expected[Masked.allowed], atol=0.03)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([True, True], "action_masks gave 2 values: it must give one for each of 3 options"),
        ([False, False, False], "action_masks of environment 0 forbids all options of choice 0"),
    ],
)
def test_masks_that_cannot_be_obeyed_are_refused(mask: list[bool], message: str) -> None:
    class Wrong(Masked):
        def action_masks(self) -> np.ndarray:
            return np.array(mask)

    model = dae.PPO("MlpPolicy", Wrong(), n_steps=16, batch_size=16)
    with pytest.raises(ValueError, match=message):
        model.learn(16)
    with pytest.raises(ValueError, match=message):
        model.predict(np.zeros((1, 2), np.float32), action_masks=np.array([mask]))


def test_masks_by_another_convention_are_said_in_one_line() -> None:
    class Wrong(Masked):
        def action_masks(self, state: int) -> np.ndarray:  # type: ignore[override]
            return self.allowed[state]

    with pytest.raises(ValueError, match="it must be a method without arguments that returns 3 flags"):
        dae.PPO("MlpPolicy", Wrong(), n_steps=16, batch_size=16).learn(16)
    model = dae.PPO("MlpPolicy", Masked(), n_steps=16, batch_size=16)
    with pytest.raises(ValueError, match="action_masks has 2 rows for 3 observations"):
        model.predict(np.zeros((3, 2), np.float32), action_masks=np.ones((2, 3)))


def test_masks_need_actions_that_can_be_enumerated() -> None:
    model = dae.PPO("MlpPolicy", Spaces(BOX, spaces.Box(-1, 1, (2,))), advantage="gae", n_steps=64)
    with pytest.raises(ValueError, match="action_masks need actions that can be enumerated, not Box"):
        model.predict(np.zeros((1, 3), np.float32), action_masks=np.ones((1, 2)))


class Adapter(DummyVecEnv):
    """A vector environment of others, which answers what Stable-Baselines3 asks and nothing else."""

    def __init__(self, answer: Any) -> None:
        super().__init__([lambda: gym.make("CartPole-v1")] * 2)
        self.answer = answer

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None, None]
        if isinstance(self.answer, type):
            raise self.answer
        return [self.answer, self.answer]


@pytest.mark.parametrize("answer", [NotImplementedError, AttributeError, None, np.ones(2, bool)], ids=str)
def test_only_a_method_is_asked_for_masks(answer: Any) -> None:
    """Whatever else goes by that name is trained with as in Stable-Baselines3, which does not look at it."""
    model = dae.PPO("MlpPolicy", Adapter(answer), n_steps=16, batch_size=16, n_epochs=1).learn(32)
    assert model.rollout_buffer.masks is None
