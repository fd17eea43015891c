"""With GAE our PPO is Stable-Baselines3's: the same weights from the same seed; the baseline is beyond doubt."""

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import dae
from tests.agent.worlds import Images, Spaces


def cartpole() -> VecEnv:
    return make_vec_env("CartPole-v1", 4, seed=3)


def images() -> VecEnv:
    return make_vec_env(Images, 3, seed=3)


def normalised() -> VecEnv:
    return VecNormalize(make_vec_env("CartPole-v1", 4, seed=3))


def truncating() -> VecEnv:
    """Every episode is cut after 9 steps, several times within a rollout."""
    return make_vec_env(lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 9), 4, seed=3)


def continuous() -> VecEnv:
    return make_vec_env(lambda: Spaces(spaces.Box(-1, 1, (3,)), spaces.Box(-2, 2, (2,))), 2, seed=3)


def multi_discrete() -> VecEnv:
    return make_vec_env(lambda: Spaces(spaces.Box(-1, 1, (3,)), spaces.MultiDiscrete([3, 2])), 2, seed=3)


def multi_binary() -> VecEnv:
    return make_vec_env(lambda: Spaces(spaces.Box(-1, 1, (3,)), spaces.MultiBinary(3)), 2, seed=3)


def dictionary() -> VecEnv:
    parts = {"near": spaces.Box(-1, 1, (3,)), "kind": spaces.Discrete(4)}
    return make_vec_env(lambda: Spaces(spaces.Dict(parts), spaces.Discrete(2)), 2, seed=3)


SETTINGS: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 32,
    "n_epochs": 3,
    "ent_coef": 0.01,
    "seed": 5,
    "device": "cpu",
}
CASES: list[Any] = [
    pytest.param("MlpPolicy", cartpole, {}, id="mlp"),
    pytest.param("CnnPolicy", images, {}, id="cnn"),
    pytest.param("MlpPolicy", normalised, {}, id="VecNormalize"),
    pytest.param("MlpPolicy", truncating, {}, id="truncation"),
    pytest.param("MlpPolicy", continuous, {}, id="Box actions"),
    pytest.param("MlpPolicy", continuous, {"use_sde": True, "sde_sample_freq": 4}, id="gSDE"),
    pytest.param("MlpPolicy", multi_discrete, {}, id="MultiDiscrete"),
    pytest.param("MlpPolicy", multi_binary, {}, id="MultiBinary"),
    pytest.param("MultiInputPolicy", dictionary, {}, id="Dict observations"),
    pytest.param("MlpPolicy", cartpole, {"clip_range_vf": 0.1}, id="value clipping"),
    pytest.param("MlpPolicy", cartpole, {"target_kl": 0.003}, id="target_kl"),
    pytest.param("MlpPolicy", cartpole, {"normalize_advantage": False}, id="no normalisation"),
    pytest.param("MlpPolicy", cartpole, {"batch_size": 48}, id="uneven minibatch"),
    pytest.param(
        "MlpPolicy",
        cartpole,
        {
            "policy_kwargs": {
                "net_arch": {"pi": [16], "vf": [8, 8]},
                "activation_fn": torch.nn.ReLU,
                "ortho_init": False,
            },
            "learning_rate": lambda progress: 1e-3 * progress,
            "clip_range": lambda progress: 0.3 * progress,
        },
        id="policy_kwargs and schedules",
    ),
    pytest.param(
        "CnnPolicy",
        images,
        {"policy_kwargs": {"share_features_extractor": False}, "n_epochs": 1},
        id="separate networks",
    ),
]


@pytest.mark.filterwarnings("ignore:.*mini-batch:UserWarning", "ignore:batch_size=48:UserWarning")
@pytest.mark.parametrize(("policy", "make", "changes"), CASES)
def test_three_iterations_give_the_same_weights(
    policy: str, make: Callable[[], VecEnv], changes: dict[str, Any]
) -> None:
    arguments = SETTINGS | changes
    ours = dae.PPO(policy, make(), advantage="gae", **arguments)
    theirs = stable_baselines3.PPO(policy, make(), **arguments)
    start = {name: weight.clone() for name, weight in ours.policy.state_dict().items()}
    for model in (ours, theirs):
        frames = 3 * 32 * model.n_envs
        set_random_seed(0)
        model.learn(frames)
    expected = theirs.policy.state_dict()
    assert ours.policy.state_dict().keys() == expected.keys()
    for name, weight in ours.policy.state_dict().items():
        torch.testing.assert_close(weight, expected[name], rtol=0, atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")
    assert any((weight - start[name]).abs().max() > 1e-3 for name, weight in expected.items())


@pytest.mark.parametrize(
    "name",
    [
        "learning_rate",
        "n_steps",
        "batch_size",
        "n_epochs",
        "clip_range",
        "ent_coef",
        "vf_coef",
        "max_grad_norm",
        "gamma",
        "gae_lambda",
    ],
)
def test_defaults_with_gae_are_those_of_sb3(name: str) -> None:
    ours, theirs = (
        dae.PPO("MlpPolicy", "CartPole-v1", advantage="gae"),
        stable_baselines3.PPO("MlpPolicy", "CartPole-v1"),
    )
    mine, reference = getattr(ours, name), getattr(theirs, name)
    assert (mine(1.0), mine(0.0)) == (reference(1.0), reference(0.0)) if callable(mine) else mine == reference


def test_sb3s_arguments_are_there_in_its_order() -> None:
    ours, theirs = (list(inspect.signature(cls.__init__).parameters) for cls in (dae.PPO, stable_baselines3.PPO))
    assert ours[: len(theirs)] == theirs, "an argument by position means the same"
