"""The paper's networks: their sizes, counted by hand, how they start, and that they train."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env

import dae
from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.experiments.config import parse
from dae.experiments.training.building import make_model
from tests.agent.worlds import Spaces

IMAGES = spaces.Box(0, 255, (4, 84, 84), np.uint8)


def conv(inside: int, outside: int, size: int) -> int:
    """Return the weights and biases of a convolution."""
    return inside * outside * size**2 + outside


def linear(inside: int, outside: int) -> int:
    return inside * outside + outside


def convolutions(a: int, b: int, c: int) -> int:
    """Return the size of Atari's trunk: pictures of 84 x 84 become 20 x 20, 9 x 9 and 7 x 7."""
    return conv(4, a, 8) + conv(a, b, 4) + conv(b, c, 3)


def block(inside: int, n: int) -> int:
    """Return the size of IMPALA's block: a convolution, and two branches of two, each with a scale (SkipInit)."""
    return conv(inside, n, 3) + 2 * (2 * conv(n, n, 3) + 1)


# Extractor, its options, its observations, its size, its features.
NETWORKS = [
    (MinAtarCNN, {}, (4, 10, 10), conv(4, 32, 3) + conv(32, 32, 3) + linear(6 * 6 * 32, 256), 256),
    (MinAtarCNN, {"width": 4}, (4, 10, 10), conv(4, 128, 3) + conv(128, 128, 3) + linear(6 * 6 * 128, 1024), 1024),
    (AtariCNN, {}, (4, 84, 84), convolutions(32, 64, 64) + linear(7 * 7 * 64, 512), 512),
    (AtariCNN, {"channels": "paper"}, (4, 84, 84), convolutions(32, 32, 32) + linear(7 * 7 * 32, 512), 512),
    (AtariCNN, {"width": 2}, (4, 84, 84), convolutions(64, 128, 128) + linear(7 * 7 * 128, 1024), 1024),
    (
        ImpalaCNN,
        {},
        (4, 84, 84),  # which the max-pools make 42, 21 and 11 wide
        block(4, 64) + block(64, 128) + block(128, 128) + linear(11 * 11 * 128, 512),
        512,
    ),
]


@pytest.mark.parametrize(("network", "options", "shape", "parameters", "features"), NETWORKS)
def test_networks_have_the_papers_sizes(network: Any, options: Any, shape: Any, parameters: int, features: int) -> None:
    built = network(spaces.Box(0, 255, shape, np.uint8), **options)
    assert sum(p.numel() for p in built.parameters()) == parameters
    assert built(torch.zeros(2, *shape)).shape == (2, features)


def images(actions: int, n_envs: int = 2) -> Any:
    return make_vec_env(lambda: Spaces(IMAGES, spaces.Discrete(actions)), n_envs, seed=0)


def size(policy: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in policy.parameters())


def of_train(words: list[str], env: Any) -> dae.PPO:
    """Make an agent as `dae train` does, for another environment."""
    sizes = ["--actors", "2", "--steps", "8", "--batch-size", "16", "--epochs", "1", "--no-anneal", "--device", "cpu"]
    return make_model(parse(["ALE/Pong-v5", *words, *sizes]), env)


# Weights and biases of the trunk by layer, features, actions.
ATARI = [
    ([], 8_224 + 32_832 + 36_928 + 1_606_144, 512, 6),
    (["--atari-trunk", "paper"], 8_224 + 16_416 + 9_248 + 803_328, 512, 18),
    (["--network", "wide"], 16_448 + 131_200 + 147_584 + 6_423_552, 1024, 6),
    # A block has a convolution, and four more and two scales in its branches; last the hidden layer.
    (
        ["--network", "deep"],
        (2_368 + 4 * 36_928 + 2) + (73_856 + 4 * 147_584 + 2) + (147_584 + 4 * 147_584 + 2) + 7_930_368,
        512,
        18,
    ),
]


@pytest.mark.parametrize(("words", "trunk", "features", "actions"), ATARI)
def test_ataris_networks_have_one_trunk_and_three_heads(
    words: list[str], trunk: int, features: int, actions: int
) -> None:
    policy = of_train(words, images(actions)).policy
    of_policy, of_value, of_advantage = actions * (features + 1), features + 1, actions * (features + 1)
    assert size(policy) == trunk + of_policy + of_value + of_advantage


def test_every_door_leads_to_the_same_network() -> None:
    """`dae train`, the extractor's own default, and Stable-Baselines3 itself."""
    env = images(6)
    own = dae.PPO("CnnPolicy", env, policy_kwargs={"features_extractor_class": AtariCNN}, device="cpu").policy
    ours = of_train([], env).policy
    assert [p.shape for p in own.parameters()] == [p.shape for p in ours.parameters()]
    of_sb3 = stable_baselines3.PPO("CnnPolicy", env, device="cpu").policy
    assert size(of_sb3) == size(of_train(["--advantage", "gae"], env).policy) == size(ours) - 6 * 513


def test_the_channels_of_the_authors_are_ataris_default_and_no_older_run_changes() -> None:
    for preset in ("paper", "quick", "sb3"):
        assert parse(["ALE/Pong-v5", "--preset", preset]).atari_trunk == "code"
        assert parse(["MinAtar/Breakout-v1", "--preset", preset]).atari_trunk == "paper"


@pytest.mark.parametrize("network", ["baseline", "wide", "deep"])
def test_ataris_networks_start_orthogonal_and_train(network: str) -> None:
    """Gains: √2 in the trunk, 0.01, 1 and 0.1 in the heads; biases and the scales of branches are 0."""
    model = of_train(["--network", network], images(6))
    heads = {"action_net": 0.01, "value_net": 1.0, "critic_net": 0.1}
    for name, parameter in model.policy.named_parameters():
        if parameter.ndim < 2:
            assert (parameter == 0).all(), name
            continue
        flat = parameter.detach().flatten(1)
        gram = flat @ flat.T if len(flat) <= len(flat.T) else flat.T @ flat
        gain = heads.get(name.removesuffix(".weight"), 2**0.5)
        torch.testing.assert_close(gram, gain**2 * torch.eye(len(gram)), rtol=1e-4, atol=1e-4 * gain**2, msg=name)
    before = {name: parameter.clone() for name, parameter in model.policy.named_parameters()}
    model.learn(16)
    for name, parameter in model.policy.named_parameters():
        assert torch.isfinite(parameter).all(), name
        # A branch whose scale is 0 has no gradient yet; its scale has one.
        assert torch.equal(parameter, before[name]) == (".branch." in name), name


@pytest.mark.parametrize(
    ("channels", "options"),
    [
        ("paper", {"features_extractor_kwargs": {"width": 0.5}}),
        ("paper", {"share_features_extractor": False}),
        ("code", {"features_extractor_kwargs": None}),
    ],
)
def test_an_agent_that_was_saved_without_its_channels_has_those_of_its_weights(
    channels: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was when the default was another."""
    env = images(3)
    arguments = {"features_extractor_class": AtariCNN, **options}
    with monkeypatch.context() as then:
        then.setattr(AtariCNN.__init__, "__defaults__", (1, channels))
        model = dae.PPO("CnnPolicy", env, policy_kwargs=arguments, n_steps=8, batch_size=16, device="cpu")
        model.save(tmp_path / "agent.zip")
    loaded = dae.PPO.load(tmp_path / "agent.zip", device="cpu")
    shown = env.reset()
    np.testing.assert_array_equal(loaded.advantages(shown).values, model.advantages(shown).values)
    assert loaded.policy_kwargs["features_extractor_kwargs"]["channels"] == channels


def test_the_deep_network_starts_without_its_residual_branches() -> None:
    network = ImpalaCNN(spaces.Box(0, 255, (4, 84, 84), np.uint8))
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [m.out_channels for m in convolutions] == [64] * 5 + [128] * 5 + [128] * 5
    assert network.features_dim == 512
    x = torch.rand(1, 4, 84, 84, generator=torch.Generator().manual_seed(0))
    before = network(x)
    for name, parameter in network.named_parameters():
        if "branch" in name:
            torch.nn.init.normal_(parameter)
    assert torch.equal(network(x), before)
    scales = [p for name, p in network.named_parameters() if name.endswith("scale")]
    assert len(scales) == 6
    assert all(p.ndim == 0 for p in scales)


def test_networks_refuse_what_they_cannot_take() -> None:
    with pytest.raises(ValueError, match="needs observations of shape"):
        MinAtarCNN(spaces.Box(0, 1, (4,)))
    with pytest.raises(ValueError, match="width is 0"):
        MinAtarCNN(spaces.Box(0, 1, (4, 10, 10)), width=0)
    with pytest.raises(ValueError, match="channels='big' is not known"):
        AtariCNN(spaces.Box(0, 1, (4, 84, 84)), channels="big")


def test_heads_have_the_papers_gains_and_sit_on_the_trunk() -> None:
    policy = dae.PPO("CnnPolicy", dae.make_vec_env("MinAtar/Seaquest-v1", 4)).policy
    assert isinstance(policy.features_extractor, MinAtarCNN)
    assert [tuple(m.weight.shape) for m in (policy.action_net, policy.value_net, policy.critic_net)] == [
        (6, 256),
        (1, 256),
        (6, 256),
    ]
    for module, gain in ((policy.action_net, 0.01), (policy.value_net, 1.0), (policy.critic_net, 0.1)):
        singular = torch.linalg.svdvals(module.weight)
        torch.testing.assert_close(singular, torch.full_like(singular, gain))
        assert (module.bias == 0).all()
