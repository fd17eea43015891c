"""The advantage estimators. PPO uses them only through the interface of `AdvantageEstimator`."""

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from dae import catalog
from dae.agent import parallel
from dae.agent.actions import Choices
from dae.agent.policy import HeadName, Heads
from dae.agent.rollout import Batch, Rollout, ends_of
from dae.catalog import EstimatorInfo
from dae.core import dae_loss, duel_loss, gae, indirect_loss, later_advantages, normalize_advantages
from dae.errors import InvalidValue


@dataclass(frozen=True)
class Estimate:
    """What an estimator computes from a minibatch."""

    advantages: Tensor  # of the actions taken, with the batch's shape, ready to weight the policy update; no gradient
    critic_loss: Tensor  # scalar


@dataclass
class AdvantageEstimator(ABC):
    """An estimator works once per rollout (`prepare`), at every minibatch (`__call__`), or both.

    `info` describes it to the rest of the program, also what minibatches it needs; `head` says which output the
    policy's critic must have besides the value, `clips_values` whether it uses `value_clip_range`. A new one is a
    subclass with the decorator `register_estimator`. Subclasses are dataclasses: the fields are the estimator's own
    options, which are saved with an agent; anything else that it learns is its `state`.
    """

    info: ClassVar[EstimatorInfo]
    head: ClassVar[HeadName | None] = None
    clips_values: ClassVar[bool] = False

    def configure(self, *, gamma: float, lam: float = 0.95, normalize: bool = True, choices: Choices | None) -> None:
        """Apply the settings that PPO has for all estimators."""
        self.gamma, self.lam, self.normalize = gamma, lam, normalize
        if choices is not None:
            self.choices = choices
        # These may follow a schedule: PPO sets them before each update.
        self.value_clip_range: float | None = None
        self.correction = 0.0
        self.control_weight: Tensor | float = 0.0  # what the last update gave to Â as a control variate

    @property
    def options(self) -> dict[str, Any]:
        """The estimator's own options, by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def state(self) -> dict[str, Tensor]:
        """Return what the estimator has learned and must not forget when an agent is saved."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        if state:
            raise InvalidValue(f"{type(self).__name__} has no state, but the file has {', '.join(state)}")

    def prepare(self, rollout: Rollout) -> None:  # noqa: B027 (most have nothing to prepare)
        """Do the work that is needed once per rollout."""

    @abstractmethod
    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        """Estimate the advantages of a minibatch and say what the critic should learn from it."""

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        """Turn the extra head's output into Â(s, ·), (..., A)."""
        raise TypeError(f"{type(self).__name__} does not model advantages of actions that were not taken")


ESTIMATORS: dict[str, type[AdvantageEstimator]] = {}
Kind = TypeVar("Kind", bound=type[AdvantageEstimator])


def register_estimator(kind: Kind) -> Kind:
    """Register an estimator under its name, for `dae.PPO`, for saved agents that name it, and for reports."""
    catalog.add(kind.info)
    known = ESTIMATORS.setdefault(kind.info.name, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidValue(f"the name {kind.info.name!r} is already used by the estimator {known.__qualname__}")
    ESTIMATORS[kind.info.name] = kind
    return kind


@register_estimator
@dataclass
class GAE(AdvantageEstimator):
    """Generalised advantage estimation: prepared once per rollout, learned from shuffled steps."""

    info = catalog.GAE
    clips_values = True

    def prepare(self, rollout: Rollout) -> None:
        rollout.advantages, rollout.returns = gae(
            rollout.rewards, rollout.values, **ends_of(rollout), gamma=self.gamma, lam=self.lam
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


@register_estimator
@dataclass
class DAE(AdvantageEstimator):
    """Direct advantage estimation: the network's own advantages, centred under the policy that acted.

    With `correction` c > 0, which is ours and not the paper's, the policy learns from

        (1 − c) Â_t + c (GAE_t − w Σ_{k ≥ 1} (γλ)^k Â'_{t+k})

    where the prime marks the network that acted: c = 0 is DAE, c = 1 is GAE with Â' as a control variate. Its weight w,
    from 0 to 1, is the slope of GAE's noise on the sums of Â' in the rollout: the multiple that removes most of it.
    """

    info = catalog.DAE
    head = "advantage"
    loss = staticmethod(dae_loss)

    def prepare(self, rollout: Rollout) -> None:
        self.control_weight = 0.0
        if not self.correction:
            return
        assert rollout.critic is not None
        assert rollout.log_probs is not None
        taken = self.choices.taken(self.choices.center(rollout.critic, rollout.log_probs.exp()), rollout.actions)
        estimates, _ = gae(rollout.rewards, rollout.values, **ends_of(rollout), gamma=self.gamma, lam=self.lam)
        ends = {"terminated": rollout.terminated, "truncated": rollout.truncated}
        later = later_advantages(taken, **ends, gamma=self.gamma, lam=self.lam)
        weight = _slope(estimates - taken, later).clamp(0, 1)
        rollout.advantages = estimates - weight * later
        # Where a row is cut within an episode, what follows is in the rollout: the value there is corrected as well.
        follows = ~(rollout.terminated | rollout.truncated)[:, :-1]
        unexplained = rollout.advantages - weight * taken
        rollout.bootstrap[:, :-1] += self.correction * follows * unexplained[:, 1:]
        self.control_weight = weight

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert heads.critic is not None
        assert batch.log_probs is not None
        mu = batch.log_probs.exp()
        all_advantages = self.choices.center(heads.critic, mu)
        taken = self.choices.taken(all_advantages, batch.actions)
        loss = type(self).loss(batch.rewards, taken, heads.values, **ends_of(batch), gamma=self.gamma)
        if batch.advantages is not None:
            corrected = (1 - self.correction) * taken.detach() + self.correction * batch.advantages
            return Estimate(_standardize(corrected, eps=1e-8) if self.normalize else corrected, loss)
        weights = all_advantages.detach()
        if self.normalize:
            weights = normalize_advantages(weights, mu, mean=parallel.mean)
        return Estimate(self.choices.taken(weights, batch.actions), loss)

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        return self.choices.center(critic, probs)


@register_estimator
@dataclass
class Duel(DAE):
    """The dueling ablation: like DAE, but each advantage explains only its own step."""

    info = catalog.DUEL
    loss = staticmethod(duel_loss)


@register_estimator
@dataclass
class Indirect(AdvantageEstimator):
    """The indirect ablation: learn Q and V separately, and take their difference."""

    info = catalog.INDIRECT
    head = "q"

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert heads.critic is not None
        q_values = self.choices.taken(heads.critic, batch.actions)
        loss = indirect_loss(batch.rewards, q_values, heads.values, **ends_of(batch), gamma=self.gamma)
        advantages = (q_values - heads.values).detach()
        return Estimate(_standardize(advantages, eps=1e-5) if self.normalize else advantages, loss)

    def advantages(self, critic: Tensor, values: Tensor, probs: Tensor) -> Tensor:
        return critic - values.unsqueeze(-1)


def make_estimator(advantage: "str | type[AdvantageEstimator] | AdvantageEstimator") -> AdvantageEstimator:
    """Return an estimator of the agent's own, given a name, a class, or an instance with options."""
    if isinstance(advantage, str) or not isinstance(advantage, AdvantageEstimator | type):
        return ESTIMATORS[catalog.require_estimator(advantage).name]()
    kind = advantage if isinstance(advantage, type) else type(advantage)
    info = getattr(kind, "info", None)
    if info is None or ESTIMATORS.get(info.name) is not kind:  # a saved agent would not find it
        raise InvalidValue(
            f"advantage={kind.__name__} is not registered: give it an `info` of its own and the decorator "
            "dae.agent.register_estimator"
        )
    return kind() if isinstance(advantage, type) else copy.deepcopy(advantage)


def _slope(y: Tensor, x: Tensor) -> Tensor:
    """Return the slope of the regression of y on x, over all processes that train together; 0 if x does not vary."""
    x = x - parallel.mean(x)
    return parallel.mean(y * x) / parallel.mean(x.square()).clamp(min=torch.finfo(x.dtype).tiny)


def _standardize(x: Tensor, eps: float) -> Tensor:
    """Normalise x to mean 0 and standard deviation 1, over all processes that train together."""
    count = x.numel() * parallel.size()
    if count == 1:
        return x
    centred = x - parallel.mean(x)
    variance = parallel.mean(centred.square()) * (count / (count - 1))
    return centred / (variance.sqrt() + eps)
