"""An estimator as a user would add one: this file is all that it takes."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from dae.agent import AdvantageEstimator, Batch, Estimate, EstimatorInfo, Heads, Rollout, register_estimator
from dae.core import n_step_targets


@register_estimator
@dataclass
class RunningMean(AdvantageEstimator):
    """The return minus a running mean of returns: REINFORCE with the simplest baseline."""

    info = EstimatorInfo(
        "running-mean",
        "Running mean",
        paper={"n_epochs": 1},
        defaults={"n_epochs": 1},
        action_spaces=("Discrete", "Box"),
        batching="steps",
        models_all_actions=False,
        compared_with=("gae",),
    )

    decay: float = 0.5  # an option of its own

    def __post_init__(self) -> None:
        self.mean = torch.zeros(())

    def prepare(self, rollout: Rollout) -> None:
        ends = {"bootstrap": rollout.bootstrap, "terminated": rollout.terminated, "truncated": rollout.truncated}
        rollout.returns = n_step_targets(rollout.rewards, **ends, gamma=self.gamma)
        self.mean = self.decay * self.mean + (1 - self.decay) * rollout.returns.mean()
        rollout.advantages = rollout.returns - self.mean

    def __call__(self, heads: Heads, batch: Batch) -> Estimate:
        assert batch.advantages is not None
        assert batch.returns is not None
        return Estimate(batch.advantages, mse_loss(heads.values, batch.returns))

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.mean = state["mean"]
