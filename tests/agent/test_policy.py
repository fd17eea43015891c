"""Policies with a second critic output, against Stable-Baselines3's own and against distributions worked by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from dae.agent import CnnPolicy, MlpPolicy, MultiInputPolicy
from dae.agent.policy import CriticHeadMixin

VECTOR = spaces.Box(-1, 1, (4,))


def make(kind: type[CriticHeadMixin] = MlpPolicy, space: Any = VECTOR, actions: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind(space, actions or spaces.Discrete(3), lambda _: 1e-3, **options)


def states(n: int = 5) -> torch.Tensor:
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "actions",
    [spaces.Discrete(3), spaces.Box(-1, 1, (2,)), spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)],
    ids=["discrete", "box", "multi-discrete", "multi-binary"],
)
def test_it_evaluates_actions_as_sb3_does(actions: Any) -> None:
    policy, theirs = make(actions=actions), make(ActorCriticPolicy, actions=actions)
    theirs.load_state_dict(policy.state_dict())
    with torch.no_grad():
        taken, values, log_prob, log_probs, _ = policy.act(states())
        expected_values, expected_log_prob, expected_entropy = theirs.evaluate_actions(states(), taken)
        heads = policy.evaluate(states(), taken)
    torch.testing.assert_close(values, expected_values.squeeze(-1))
    torch.testing.assert_close(log_prob, expected_log_prob)
    torch.testing.assert_close(heads.values, expected_values.squeeze(-1))
    torch.testing.assert_close(heads.log_prob, expected_log_prob)
    torch.testing.assert_close(heads.entropy, expected_entropy)
    assert heads.critic is None
    assert (log_probs is None) == (heads.log_probs is None) == isinstance(actions, spaces.Box)


def test_log_probs_of_all_actions_are_a_distribution_and_hold_those_taken() -> None:
    policy = make(critic_head="advantage")
    with torch.no_grad():
        taken, _, log_prob, sampled_from, critic = policy.act(states(64))
        heads = policy.evaluate(states(64), taken)
    torch.testing.assert_close(heads.log_probs.exp().sum(-1), torch.ones(64))
    torch.testing.assert_close(heads.log_probs, torch.log_softmax(sampled_from, -1))
    torch.testing.assert_close(heads.log_probs.gather(-1, taken.reshape(-1, 1)).squeeze(-1), log_prob)
    torch.testing.assert_close(heads.entropy, -(heads.log_probs.exp() * heads.log_probs).sum(-1))
    torch.testing.assert_close(heads.critic, critic)
    assert len(set(taken.tolist())) == 3


@pytest.mark.parametrize("head", ["advantage", "q"])
@pytest.mark.parametrize("shared", [True, False], ids=["one network", "two networks"])
def test_the_second_output_reads_the_critics_latent(head: Any, shared: bool) -> None:
    policy = make(critic_head=head, share_features_extractor=shared)
    assert policy.critic_net.weight.shape == (3, 64)
    singular = torch.linalg.svdvals(policy.critic_net.weight)
    torch.testing.assert_close(singular, torch.full_like(singular, {"advantage": 0.1, "q": 1.0}[head]))
    with torch.no_grad():
        heads = policy.evaluate(states(), torch.zeros(5, dtype=torch.long))
        log_probs, values, critic = policy.critic_outputs(states())
        latent = policy.mlp_extractor.forward_critic(states())
        torch.testing.assert_close(critic, policy.critic_net(latent))
    torch.testing.assert_close(heads.critic, critic)
    torch.testing.assert_close(heads.values, values)
    torch.testing.assert_close(heads.log_probs, log_probs)


def test_the_optimizer_has_all_parameters_once_and_a_copy_is_the_same_policy() -> None:
    policy = make(critic_head="advantage")
    (group,) = policy.optimizer.param_groups
    assert {id(p) for p in group["params"]} == {id(p) for p in policy.parameters()}
    assert (group["eps"], group["fused"]) == (1e-5, True)
    again = MlpPolicy(**policy._get_constructor_parameters())
    assert again.critic_head == "advantage"
    again.load_state_dict(policy.state_dict())


def test_the_adam_that_is_asked_for_is_used() -> None:
    assert make(optimizer_kwargs={"eps": 1e-3, "foreach": True}).optimizer.param_groups[0]["eps"] == 1e-3
    assert not make(optimizer_kwargs={"foreach": True}).optimizer.param_groups[0]["fused"]
    assert isinstance(make(optimizer_class=torch.optim.SGD).optimizer, torch.optim.SGD)


def test_every_field_takes_another_leading_shape() -> None:
    heads = make(critic_head="q").evaluate(states(6), torch.zeros(6, dtype=torch.long))
    rows = heads.shaped(2, 3)
    assert rows.values.shape == rows.log_prob.shape == rows.entropy.shape == (2, 3)
    assert rows.log_probs.shape == rows.critic.shape == (2, 3, 3)
    torch.testing.assert_close(rows.critic[1, 0], heads.critic[3])


@pytest.mark.parametrize(
    ("kind", "space", "extractor", "latent"),
    [
        (CnnPolicy, spaces.Box(0, 1, (4, 10, 10), np.bool_), "MinAtarCNN", 256),  # heads directly on the trunk
        (CnnPolicy, spaces.Box(0, 255, (4, 84, 84), np.uint8), "NatureCNN", 512),
        (MultiInputPolicy, spaces.Dict({"a": VECTOR}), "CombinedExtractor", 64),
        (MlpPolicy, VECTOR, "FlattenExtractor", 64),
    ],
)
def test_the_network_fits_the_observations(kind: Any, space: Any, extractor: str, latent: int) -> None:
    policy = make(kind, space, critic_head="advantage")
    assert type(policy.features_extractor).__name__ == extractor
    assert policy.critic_net.in_features == policy.value_net.in_features == latent
