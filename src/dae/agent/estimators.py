"""The four ways to tell how good an action was. PPO knows of them what `AdvantageEstimator` says and nothing else."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import mse_loss

from dae.agent import parallel
from dae.agent.policy import HeadName, Heads
from dae.agent.rollout import Batch, Batching, Rollout
from dae.core import center, dae_loss, duel_loss, gae, indirect_loss, normalize_advantages


@dataclass(frozen=True)
class Estimate:
    """What an estimator makes of a minibatch."""

    advantages: Tensor  # of the actions taken, with the batch's shape, ready to weigh the policy's update; no gradient
    critic_loss: Tensor  # scalar


class AdvantageEstimator(ABC):
    """An estimator works once a rollout (`prepare`), at every minibatch (`__call__`), or both.

    `batching` says what minibatches it needs, `head` which output the policy's critic must have beside the value,
    `clips_values` whether it heeds `value_clip_range`. A new one is a subclass, named in `ESTIMATORS`.
    """

    batching: ClassVar[Batching]
    head: ClassVar[HeadName | None] = None
    clips_values: ClassVar[bool] = False

    def __init__(self, *, gamma: float, lam: float = 0.95, normalize: bool = True) -> None:
        self.gamma, self.lam, self.normalize = gamma, lam, normalize
        self.value_clip_range: float | None = None

    def prepare(self, rollout: Rollout) -> None:  # noqa: B027 (most have nothing to prepare)
        """Do what is to be done once a rollout."""

    @abstractmethod
    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        """Estimate the advantages of a minibatch and say what the critic should learn from it."""

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        """Turn the extra head's output into Â(s, ·), (..., A)."""
        raise TypeError(f"{type(self).__name__} models no advantages of actions that were not taken")


class GAE(AdvantageEstimator):
    """Generalised advantage estimation: prepared once a rollout, learned from shuffled steps."""

    batching = "steps"
    clips_values = True

    def prepare(self, rollout: Rollout) -> None:
        rollout.advantages, rollout.returns = gae(
            rollout.rewards, rollout.values, **_ends(rollout), gamma=self.gamma, lam=self.lam
        )

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert batch.advantages is not None
        assert batch.returns is not None
        advantages = batch.advantages
        if self.normalize:
            advantages = _standardize(advantages, eps=1e-8)
        values = heads.values
        if self.value_clip_range is not None:
            step = (values - batch.values).clamp(-self.value_clip_range, self.value_clip_range)
            values = batch.values + step
        return Estimate(advantages, mse_loss(values, batch.returns))


class DAE(AdvantageEstimator):
    """Direct advantage estimation: the network's own advantages, centred under the policy that acted."""

    batching = "trajectories"
    head = "advantage"
    loss = staticmethod(dae_loss)

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert heads.critic is not None
        assert batch.log_probs is not None
        mu = batch.log_probs.exp()
        all_advantages = center(heads.critic, mu)
        taken = _taken(all_advantages, batch)
        loss = type(self).loss(batch.rewards, taken, heads.values, **_ends(batch), gamma=self.gamma)
        weights = all_advantages.detach()
        if self.normalize:
            weights = normalize_advantages(weights, mu, mean=parallel.mean)
        return Estimate(_taken(weights, batch), loss)

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        return center(critic, probs)


class Duel(DAE):
    """The dueling ablation: as DAE, but each advantage answers for its own step alone."""

    loss = staticmethod(duel_loss)


class Indirect(AdvantageEstimator):
    """The indirect ablation: learn Q and V separately, and take their difference."""

    batching = "trajectories"
    head = "q"

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert heads.critic is not None
        q_values = _taken(heads.critic, batch)
        loss = indirect_loss(batch.rewards, q_values, heads.values, **_ends(batch), gamma=self.gamma)
        advantages = (q_values - heads.values).detach()
        return Estimate(_standardize(advantages, eps=1e-5) if self.normalize else advantages, loss)

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        return critic - values.unsqueeze(-1)


ESTIMATORS: dict[str, type[AdvantageEstimator]] = {"dae": DAE, "gae": GAE, "duel": Duel, "indirect": Indirect}


def _ends(data: Rollout | Batch) -> dict[str, Tensor]:
    return {"bootstrap": data.bootstrap, "terminated": data.terminated, "truncated": data.truncated}


def _taken(per_action: Tensor, batch: Batch) -> Tensor:
    """Pick the actions taken out of (B, T, A)."""
    return per_action.gather(-1, batch.actions.reshape(*batch.shape, 1)).squeeze(-1)


def _standardize(x: Tensor, eps: float) -> Tensor:
    """Bring x to mean 0 and standard deviation 1, over all processes that train together."""
    count = x.numel() * parallel.size()
    if count == 1:
        return x
    centred = x - parallel.mean(x)
    variance = parallel.mean(centred.square()) * (count / (count - 1))
    return centred / (variance.sqrt() + eps)
