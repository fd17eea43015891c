"""Stable-Baselines3's policies with the extra critic output that an estimator asks for."""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal, NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import (
    BernoulliDistribution,
    CategoricalDistribution,
    Distribution,
    MultiCategoricalDistribution,
)
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from dae.agent.actions import Choices
from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.core import entropy

HeadName = Literal["advantage", "q"]
# Small advantages at first, so that the sum over a trajectory does not start as noise; Q like a value.
_GAINS: dict[HeadName, float] = {"advantage": 0.1, "q": 1.0}


@dataclass(frozen=True)
class Heads:
    """The network's outputs for a batch of states, with the batch's leading shape (B, T) or (N,)."""

    values: Tensor  # V̂(s)
    log_prob: Tensor  # log π(a|s) of the actions taken
    entropy: Tensor  # H(π(·|s)), or its one-sample estimate where there is no closed form
    log_probs: Tensor | None  # log π(·|s), (..., A), of actions that can be enumerated
    critic: Tensor | None  # the raw output of the extra head, (..., A): uncentred advantages or Q-values

    def shaped(self, *shape: int) -> "Heads":
        """Give all fields another leading shape."""
        return Heads(
            self.values.reshape(shape),
            self.log_prob.reshape(shape),
            self.entropy.reshape(shape),
            None if self.log_probs is None else self.log_probs.reshape(*shape, -1),
            None if self.critic is None else self.critic.reshape(*shape, -1),
        )


class Acted(NamedTuple):
    """The actions of N actors, and what the network said about their states."""

    actions: Tensor  # with the action space's shape
    values: Tensor
    log_prob: Tensor
    log_probs: Tensor | None
    critic: Tensor | None


class CriticHeadMixin(ActorCriticPolicy):
    """An actor-critic policy whose critic may have a second output, one number per action."""

    def __init__(self, *args: Any, critic_head: HeadName | None = None, **kwargs: Any) -> None:
        self.critic_head = critic_head
        if kwargs.get("features_extractor_class") in (MinAtarCNN, AtariCNN, ImpalaCNN):
            kwargs.setdefault("net_arch", [])  # the paper's networks: heads directly on the trunk
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        chosen = self.optimizer_kwargs
        if self.optimizer_class is torch.optim.Adam and not (chosen.get("foreach") or chosen.get("differentiable")):
            self.optimizer_kwargs = {"fused": True} | chosen
        super()._build(lr_schedule)
        if self.critic_head is None:
            return
        assert self.choices is not None
        self.critic_net = nn.Linear(self.mlp_extractor.latent_dim_vf, self.choices.total)
        if self.ortho_init:
            self.critic_net.apply(partial(self.init_weights, gain=_GAINS[self.critic_head]))
        # The optimizer was made before this head was.
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    @cached_property
    def choices(self) -> Choices | None:
        """The choices that make up an action; None if actions cannot be enumerated."""
        return Choices.of(self.action_space)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        head = {} if self.critic_head is None else {"critic_head": self.critic_head}
        return super()._get_constructor_parameters() | head

    def act(self, observations: PyTorchObs, masks: Tensor | None = None) -> Acted:
        """Sample actions for N states; `masks` (N, A) tells which options are allowed."""
        if acts_in_its_own_way(type(self)):
            actions, values, log_prob = self(observations)
            return Acted(actions, values.flatten(), log_prob, None, None)
        latent_pi, latent_vf = self._latents(observations)
        values = self.value_net(latent_vf).squeeze(-1)
        critic = None if self.critic_head is None else self.critic_net(latent_vf)
        if masks is None:
            distribution = self._get_action_dist_from_latent(latent_pi)
            actions = distribution.get_actions()
            log_prob, log_probs = distribution.log_prob(actions), _log_probs_of(distribution)
        else:
            assert self.choices is not None
            log_probs = self._log_probs(latent_pi, masks)
            actions = self.choices.sample(log_probs)
            log_prob = self.choices.taken(log_probs, actions)
        return Acted(actions.reshape((-1, *self.action_space.shape)), values, log_prob, log_probs, critic)  # type: ignore[misc]

    def evaluate(self, observations: PyTorchObs, actions: Tensor, masks: Tensor | None = None) -> Heads:
        """Return all that a training step needs of N states and the actions taken there."""
        if acts_in_its_own_way(type(self)):
            flat = actions.flatten(1) if actions.dim() > 1 else actions  # as Stable-Baselines3 stores them
            values, log_prob, own_entropy = self.evaluate_actions(observations, flat)
            return Heads(values.flatten(), log_prob, -log_prob if own_entropy is None else own_entropy, None, None)
        latent_pi, latent_vf = self._latents(observations)
        values = self.value_net(latent_vf).squeeze(-1)
        critic = None if self.critic_head is None else self.critic_net(latent_vf)
        if self.choices is not None:
            log_probs = self._log_probs(latent_pi, masks)
            return Heads(values, self.choices.taken(log_probs, actions), entropy(log_probs), log_probs, critic)
        distribution = self._get_action_dist_from_latent(latent_pi)
        log_prob, closed_form = distribution.log_prob(actions.flatten(1)), distribution.entropy()
        return Heads(values, log_prob, -log_prob if closed_form is None else closed_form, None, critic)

    def log_probs(self, observations: PyTorchObs, masks: Tensor | None = None) -> Tensor:
        """Return log π(·|s), for actions that can be enumerated."""
        return self._log_probs(self._latents(observations)[0], masks)

    def critic_outputs(self, observations: PyTorchObs, masks: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return log π(·|s), V̂(s) and the extra head's output, for actions that can be enumerated."""
        latent_pi, latent_vf = self._latents(observations)
        return self._log_probs(latent_pi, masks), self.value_net(latent_vf).squeeze(-1), self.critic_net(latent_vf)

    def choose(self, observations: PyTorchObs, masks: Tensor, *, deterministic: bool) -> Tensor:
        """Return allowed actions for N states: the most probable ones, or a sample."""
        assert self.choices is not None
        return self.choices.sample(self.log_probs(observations, masks), deterministic=deterministic)

    def _log_probs(self, latent_pi: Tensor, masks: Tensor | None) -> Tensor:
        """Return log π(·|s), also for a policy that overrides its distribution."""
        assert self.choices is not None
        own = type(self)._get_action_dist_from_latent is not ActorCriticPolicy._get_action_dist_from_latent
        if own or isinstance(self.action_dist, BernoulliDistribution):
            log_probs = _log_probs_of(self._get_action_dist_from_latent(latent_pi))
            assert log_probs is not None
        else:  # a Categorical would wait for the device
            log_probs = self.choices.log_softmax(self.action_net(latent_pi))
        return log_probs if masks is None else self.choices.log_softmax(log_probs.masked_fill(~masks, -torch.inf))

    def _latents(self, observations: PyTorchObs) -> tuple[Tensor, Tensor]:
        features = self.extract_features(observations)
        if self.share_features_extractor:
            latents: tuple[Tensor, Tensor] = self.mlp_extractor(features)
            return latents
        actor, critic = features
        return self.mlp_extractor.forward_actor(actor), self.mlp_extractor.forward_critic(critic)


def acts_in_its_own_way(policy: type[BasePolicy]) -> bool:
    """Say whether a policy overrides how it acts, or how its actions are evaluated."""
    names = ("forward", "evaluate_actions")
    return any(getattr(policy, name, None) is not getattr(ActorCriticPolicy, name) for name in names)


class MlpPolicy(CriticHeadMixin):
    """Vectors in; by default two hidden layers of 64 each for actor and critic, as in Stable-Baselines3."""


class CnnPolicy(CriticHeadMixin, ActorCriticCnnPolicy):
    """Images in: Stable-Baselines3's network, or the paper's for MinAtar's 10x10 planes of flags."""

    def __init__(self, observation_space: spaces.Space[Any], *args: Any, **kwargs: Any) -> None:
        planes = isinstance(observation_space, spaces.Box) and observation_space.shape[1:] == (10, 10)
        kwargs.setdefault("features_extractor_class", MinAtarCNN if planes else NatureCNN)
        super().__init__(observation_space, *args, **kwargs)


class MultiInputPolicy(CriticHeadMixin, MultiInputActorCriticPolicy):
    """Dictionaries of observations in."""


_OURS: dict[type[ActorCriticPolicy], type[CriticHeadMixin]] = {
    ActorCriticPolicy: MlpPolicy,
    ActorCriticCnnPolicy: CnnPolicy,
    MultiInputActorCriticPolicy: MultiInputPolicy,
}


@cache
def with_critic_head(policy: type[ActorCriticPolicy]) -> type[CriticHeadMixin]:
    """Return a policy class that can have the extra critic output, given any that Stable-Baselines3's PPO accepts."""
    if issubclass(policy, CriticHeadMixin):
        return policy
    return _OURS.get(policy) or type(policy.__name__, (CriticHeadMixin, policy), {"__doc__": policy.__doc__})


def _log_probs_of(distribution: Distribution) -> Tensor | None:
    """Return log π(·|s), choice after choice; None if actions cannot be enumerated."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.distribution.logits
    if isinstance(distribution, MultiCategoricalDistribution):
        return torch.cat([part.logits for part in distribution.distribution], -1)
    if isinstance(distribution, BernoulliDistribution):
        logits = distribution.distribution.logits
        return torch.stack((logsigmoid(-logits), logsigmoid(logits)), -1).flatten(-2)
    return None
