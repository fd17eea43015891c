"""Stable-Baselines3's own PPO in the frame of our runs, to compare with."""

from typing import Any, ClassVar

import stable_baselines3
import torch
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.common.utils import FloatSchedule, obs_as_tensor

from dae.agent.policy import Acted
from dae.agent.ppo import PPO
from dae.agent.settings import check_model


class ReferencePPO(PPO):
    """What `stable_baselines3.PPO` computes, by its own code: its policies, its rollouts, its updates.

    Only files are ours, so that a run of it can be recorded, resumed and reported like any other.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = stable_baselines3.PPO.policy_aliases
    collect_rollouts = OnPolicyAlgorithm.collect_rollouts  # type: ignore[assignment]
    train = stable_baselines3.PPO.train

    def act(self, observations: Any, allowed: Any) -> tuple[PyTorchObs, Acted, None]:
        """Choose actions as Stable-Baselines3 does: it knows no masks."""
        with torch.no_grad():
            tensors = obs_as_tensor(observations, self.device)
            actions, values, log_prob = self.policy(tensors)
            return tensors, Acted(actions, values.flatten(), log_prob, None, None), None

    def predict(self, observation: Any, *args: Any, action_masks: Any = None, **options: Any) -> tuple[Any, Any]:
        """Return actions as Stable-Baselines3 does: it knows no masks."""
        return super().predict(observation, *args, **options)

    def _setup_model(self) -> None:
        check_model(self)
        OnPolicyAlgorithm._setup_model(self)
        self.rollout_buffer_class = None  # chosen again when it is loaded
        self.clip_range = FloatSchedule(self.clip_range)
        if self.clip_range_vf is not None:
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)
