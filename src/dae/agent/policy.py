"""Stable-Baselines3's policies with the extra critic output that an estimator asks for."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn

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
    log_probs: Tensor | None  # log π(·|s), (..., A), of discrete actions
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


class CriticHeadMixin(ActorCriticPolicy):
    """An actor-critic policy whose critic may have a second output, one number per action."""

    def __init__(self, *args: Any, critic_head: HeadName | None = None, **kwargs: Any) -> None:
        self.critic_head = critic_head
        if kwargs.get("features_extractor_class") in (MinAtarCNN, AtariCNN, ImpalaCNN):
            kwargs.setdefault("net_arch", [])  # the paper's networks: heads directly on the trunk
        if kwargs.get("optimizer_class", torch.optim.Adam) is torch.optim.Adam:
            chosen = kwargs.get("optimizer_kwargs")
            chosen = {"eps": 1e-5} if chosen is None else chosen  # Stable-Baselines3's default
            own_way = any(chosen.get(name) for name in ("foreach", "differentiable"))
            kwargs["optimizer_kwargs"] = chosen if own_way else {"fused": True} | chosen
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        if self.critic_head is None:
            return
        assert isinstance(self.action_space, spaces.Discrete)
        self.critic_net = nn.Linear(self.mlp_extractor.latent_dim_vf, int(self.action_space.n))
        if self.ortho_init:
            self.critic_net.apply(partial(self.init_weights, gain=_GAINS[self.critic_head]))
        # The optimizer was made before this head was.
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters() | {"critic_head": self.critic_head}

    def act(self, observations: PyTorchObs) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Sample actions for N states; return them with V̂(s), log π(a|s) and, if discrete, log π(·|s)."""
        latent_pi, latent_vf = self._latents(observations)
        distribution = self._get_action_dist_from_latent(latent_pi)
        actions = distribution.get_actions()
        log_probs = distribution.distribution.logits if isinstance(distribution, CategoricalDistribution) else None
        values = self.value_net(latent_vf).squeeze(-1)
        return actions.reshape((-1, *self.action_space.shape)), values, distribution.log_prob(actions), log_probs  # type: ignore[misc]

    def evaluate(self, observations: PyTorchObs, actions: Tensor) -> Heads:
        """Return all that a training step needs of N states and the actions taken there."""
        latent_pi, latent_vf = self._latents(observations)
        values = self.value_net(latent_vf).squeeze(-1)
        critic = None if self.critic_head is None else self.critic_net(latent_vf)
        if isinstance(self.action_dist, CategoricalDistribution):
            log_probs = self._log_probs(latent_pi)
            log_prob = log_probs.gather(-1, actions.long().reshape(-1, 1)).squeeze(-1)
            return Heads(values, log_prob, entropy(log_probs), log_probs, critic)
        distribution = self._get_action_dist_from_latent(latent_pi)
        log_prob, closed_form = distribution.log_prob(actions), distribution.entropy()
        return Heads(values, log_prob, -log_prob if closed_form is None else closed_form, None, critic)

    def critic_outputs(self, observations: PyTorchObs) -> tuple[Tensor, Tensor, Tensor]:
        """Return log π(·|s), V̂(s) and the extra head's output, for discrete actions."""
        latent_pi, latent_vf = self._latents(observations)
        return self._log_probs(latent_pi), self.value_net(latent_vf).squeeze(-1), self.critic_net(latent_vf)

    def _log_probs(self, latent_pi: Tensor) -> Tensor:
        """Return log π(·|s), also for a policy that overrides its distribution, for example to mask actions."""
        if type(self)._get_action_dist_from_latent is ActorCriticPolicy._get_action_dist_from_latent:
            return torch.log_softmax(self.action_net(latent_pi), -1)  # a Categorical would wait for the device
        log_probs: Tensor = self._get_action_dist_from_latent(latent_pi).distribution.logits  # type: ignore[union-attr]
        return log_probs

    def _latents(self, observations: PyTorchObs) -> tuple[Tensor, Tensor]:
        features = self.extract_features(observations)
        if self.share_features_extractor:
            latents: tuple[Tensor, Tensor] = self.mlp_extractor(features)
            return latents
        actor, critic = features
        return self.mlp_extractor.forward_actor(actor), self.mlp_extractor.forward_critic(critic)


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
