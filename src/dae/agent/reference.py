"""Stable-Baselines3's own PPO in the frame of our runs, to compare with."""

from collections.abc import Callable
from typing import Any, ClassVar

import stable_baselines3
import torch
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.common.utils import FloatSchedule, obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from dae.agent.actions import no_masks
from dae.agent.policy import Acted
from dae.agent.ppo import PPO
from dae.agent.settings import check_model
from dae.errors import InvalidValue
from dae.hyperparameters import PPOOptions


class ReferencePPO(PPO):
    """What `stable_baselines3.PPO` computes, by its own code: its policies, its rollouts, its updates.

    Only files are ours, so that a run of it can be recorded, resumed and reported like any other.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = stable_baselines3.PPO.policy_aliases
    collect_rollouts = OnPolicyAlgorithm.collect_rollouts  # type: ignore[assignment]
    train = stable_baselines3.PPO.train

    def act(self, observations: Any, allowed: Any = None) -> tuple[PyTorchObs, Acted, None]:
        """Choose actions as Stable-Baselines3 does."""
        with torch.no_grad():
            tensors = obs_as_tensor(observations, self.device)
            actions, values, log_prob = self.policy(tensors)
            return tensors, Acted(actions, values.flatten(), log_prob, None, None), None

    def mask_reader(self, env: VecEnv) -> Callable[[], None]:
        """Read nothing: Stable-Baselines3 knows no masks."""
        return no_masks

    @property
    def _network(self) -> tuple[type[Any], dict[str, Any]]:
        return self.policy_class, {"use_sde": self.use_sde, **self.policy_kwargs}

    def _setup_model(self) -> None:
        unknown = [name for name, default in vars(PPOOptions()).items() if getattr(self.options, name) != default]
        if self.advantage != "gae":
            unknown.append(f"advantage {self.advantage!r}")
        if self.max_grad_norm is None:
            unknown.append("max_grad_norm=None")
        if unknown:
            raise InvalidValue(
                f"{', '.join(unknown)}: Stable-Baselines3's own PPO does not have it; use implementation 'dae'"
            )
        check_model(self)
        OnPolicyAlgorithm._setup_model(self)
        self.rollout_buffer_class = None  # chosen again when it is loaded
        self.clip_range = FloatSchedule(self.clip_range)
        if self.clip_range_vf is not None:
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)
