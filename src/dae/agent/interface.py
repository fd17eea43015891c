"""The interface that users of Stable-Baselines3 know: PPO's arguments, `learn`, `advantages`, and what is saved."""

import dataclasses
import inspect
import warnings
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, PyTorchObs, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from dae.agent import parallel
from dae.agent.actions import Choices, require_masks
from dae.agent.allocator import keep_freed_memory
from dae.agent.copies import copy_observations
from dae.agent.estimators import AdvantageEstimator, make_estimator
from dae.agent.frames import stack_size
from dae.agent.policy import (
    CnnPolicy,
    CriticHeadMixin,
    HeadName,
    MlpPolicy,
    MultiInputPolicy,
    acts_in_its_own_way,
    with_critic_head,
)
from dae.agent.rollout import Rollout
from dae.agent.saving import SafeSaving
from dae.agent.settings import check_model, check_policy_and_env, choose_estimator, resolve_defaults, whole_seed
from dae.catalog import describe, estimator_names
from dae.errors import InvalidValue, nearest
from dae.hyperparameters import PPOOptions
from dae.text import plural

_OPTIONS = [field.name for field in dataclasses.fields(PPOOptions)]


class Credit(NamedTuple):
    """What an agent thinks of the actions in a batch of states; in a single state, the same without the first axis."""

    advantages: NDArray[np.float32]  # (N, A): Â(s, ·)
    values: NDArray[np.float32]  # (N,): V̂(s)
    probabilities: NDArray[np.float32]  # (N, A): π(·|s)


class PPOInterface(SafeSaving, stable_baselines3.PPO):
    """PPO without its algorithm, which is in `dae.agent.ppo`.

    It is a `stable_baselines3.PPO` for whoever asks `isinstance`; nothing of that class itself runs but `learn`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    policy: CriticHeadMixin
    rollout_buffer: Rollout  # type: ignore[assignment]
    clip_range: Schedule
    clip_range_vf: Schedule | None
    correction: float | Schedule

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule | None = None,
        n_steps: int | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        gamma: float | None = None,
        gae_lambda: float | None = None,
        clip_range: float | Schedule | None = None,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool | None = None,
        ent_coef: float | None = None,
        vf_coef: float | None = None,
        max_grad_norm: float | Literal["default"] | None = "default",
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        rollout_buffer_class: None = None,
        rollout_buffer_kwargs: None = None,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
        *,
        advantage: str | type[AdvantageEstimator] | AdvantageEstimator | None = None,
        **options: Any,
    ) -> None:
        check_policy_and_env(policy, env, _init_setup_model, self.policy_aliases)
        for name in options:
            if name not in _OPTIONS:
                known = [*inspect.signature(type(self).__init__).parameters, *_OPTIONS]
                raise TypeError(f"PPO has no argument {name!r}{nearest(name, known)}")
        if rollout_buffer_class is not None or rollout_buffer_kwargs:
            raise InvalidValue(
                "rollout_buffer_class and rollout_buffer_kwargs are not supported: the estimators need rows of "
                "trajectories, which dae.agent.Rollout stores"
            )
        env = maybe_make_env(env, verbose)  # type: ignore[arg-type]
        if advantage is None:
            policy_class = self.policy_aliases.get(policy, ActorCriticPolicy) if isinstance(policy, str) else policy
            # Without an environment an agent is only half made, to be filled by the caller.
            advantage = "dae" if env is None else choose_estimator(env.action_space, policy_class, clip_range_vf)
        estimator = make_estimator(advantage)
        settings = resolve_defaults(
            estimator.info,
            {
                "learning_rate": learning_rate,
                "n_steps": n_steps,
                "batch_size": batch_size,
                "n_epochs": n_epochs,
                "gamma": gamma,
                "gae_lambda": gae_lambda,
                "clip_range": clip_range,
                "normalize_advantage": normalize_advantage,
                "ent_coef": ent_coef,
                "vf_coef": vf_coef,
                "max_grad_norm": max_grad_norm,
            },
        )
        self.batch_size: int = settings.pop("batch_size")
        self.n_epochs: int = settings.pop("n_epochs")
        self.clip_range = settings.pop("clip_range")
        self.normalize_advantage: bool = settings.pop("normalize_advantage")
        own = {name: settings.pop(name) for name in _OPTIONS} | options
        # Not PPO's own `__init__`: its assertions on minibatches hold for shuffled steps only (`check_model` has ours).
        OnPolicyAlgorithm.__init__(
            self,
            policy=policy,
            env=env,
            use_sde=use_sde,
            sde_sample_freq=sde_sample_freq,
            stats_window_size=stats_window_size,
            tensorboard_log=None if tensorboard_log is None else str(tensorboard_log),
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            device=device,
            seed=whole_seed(seed),
            _init_setup_model=False,
            supported_action_spaces=(spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary),
            **settings,
        )
        self.estimator = estimator
        self.advantage = estimator.info.name
        self.clip_range_vf = clip_range_vf  # type: ignore[assignment]
        self.target_kl = target_kl
        vars(self).update(own)
        if _init_setup_model:
            self._setup_model()

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        wrapped = OnPolicyAlgorithm._wrap_env(env, verbose, monitor_wrapper)
        copy_observations(wrapped)
        return wrapped

    @property
    def options(self) -> PPOOptions:
        """What is set beyond Stable-Baselines3's arguments; each is also an attribute of its own."""
        return PPOOptions(**{name: getattr(self, name) for name in _OPTIONS})

    def _setup_model(self) -> None:
        check_model(self)
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.clip_range = FloatSchedule(self.clip_range)
        if self.clip_range_vf is not None:
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)
        self.estimator.configure(
            gamma=self.gamma,
            lam=self.gae_lambda,
            normalize=self.normalize_advantage,
            choices=Choices.of(self.action_space),
        )
        self.rollout_buffer = Rollout(
            self.n_steps,
            self.n_envs,
            self.observation_space,
            self.action_space,
            self.device,
            has_head=self.estimator.head is not None,
            n_stack=stack_size(self.env),
        )
        self.policy = self._make_policy()
        parallel.begin(self.policy, self.env, self.seed)
        if self.device.type == "cpu":
            keep_freed_memory()
        self._maybe_recommend_cpu("MlpPolicy")

    @property
    def _network(self) -> tuple[type[Any], dict[str, Any]]:
        kind = with_critic_head(self.policy_class)
        return kind, {"use_sde": self.use_sde, "critic_head": self.estimator.head, **self.policy_kwargs}

    def _make_policy(self, **other: Any) -> Any:
        kind, arguments = self._network
        return kind(self.observation_space, self.action_space, self.lr_schedule, **arguments | other).to(self.device)

    def new_critic(self, head: HeadName | None) -> CriticHeadMixin:
        """Make a network like the agent's, with new weights, whose critic has this output besides the value."""
        policy: CriticHeadMixin = self._make_policy(critic_head=head)
        return policy

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "PPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> "PPOInterface":
        """Train for at least `total_timesteps` steps, counted over all environments."""
        if self.env is None:
            raise InvalidValue("the agent has no environment: pass it one, PPO.load(..., env=env) or set_env(env)")
        anew = reset_num_timesteps or self.num_timesteps == 0
        n_envs = self.n_envs * parallel.size()
        if anew and total_timesteps <= self.n_steps * n_envs and self.lr_schedule(0.0) == 0:
            warnings.warn(
                f"learn({total_timesteps}) covers one rollout ({plural(self.n_steps, 'step')} x "
                f"{plural(n_envs, 'environment')}), and the learning rate falls to 0 within this call: nothing is "
                "learned; use more steps, or a constant learning_rate",
                stacklevel=2,
            )
        super().learn(total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar)
        return self

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Return actions for observations; `action_masks` tells which are allowed, as in sb3-contrib."""
        if action_masks is None:
            return super().predict(observation, state, episode_start, deterministic)
        tensors, vectorized = self._tensors(observation)
        masks = self._masks(action_masks, tensors)
        with torch.no_grad():
            actions = self.policy.choose(tensors, masks, deterministic=deterministic)
        chosen = actions.cpu().numpy().reshape((-1, *(self.action_space.shape or ()))).astype(self.action_space.dtype)
        return (chosen if vectorized else chosen.squeeze(axis=0)), state

    def _tensors(self, observations: NDArray[Any] | dict[str, NDArray[Any]]) -> tuple[PyTorchObs, bool]:
        """Return observations as a batch of tensors, and whether they were a batch already."""
        if isinstance(observations, tuple):
            raise InvalidValue(
                "observations are a tuple: gymnasium's reset returns an observation and information; take the first"
            )
        self.policy.set_training_mode(False)
        return self.policy.obs_to_tensor(observations)

    def _masks(self, masks: NDArray[Any], observations: PyTorchObs) -> Tensor:
        """Return masks as a tensor (N, A), or refuse them."""
        choices = self.policy.choices
        if choices is None:
            raise InvalidValue(f"action_masks need actions that can be enumerated, not {self.action_space}")
        if acts_in_its_own_way(type(self.policy)):
            raise InvalidValue(
                f"policy {type(self.policy).__name__} has its own `forward`, which knows no action_masks"
            )
        table = np.atleast_2d(np.asarray(masks, bool))
        require_masks(table, choices)
        states = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        if len(table) not in (1, states):
            raise InvalidValue(
                f"action_masks has {len(table)} rows for {states} observations: it must have one for each"
            )
        return torch.from_numpy(table).to(self.device)

    def advantages(
        self, observations: NDArray[Any] | dict[str, NDArray[Any]], action_masks: NDArray[Any] | None = None
    ) -> Credit:
        """Return Â(s, ·), V̂(s) and π(·|s) of one observation or a batch: which actions matter, and how much.

        An action that is made of several choices has Â and π for each option of each choice, one choice after the
        other; its advantage is the sum over its choices.
        """
        if not self.estimator.info.models_all_actions:
            able = [repr(name) for name in estimator_names() if describe(name).models_all_actions]
            raise InvalidValue(
                f"advantage={self.advantage!r} does not model the advantages of all actions; train with "
                f"{', '.join(able[:-1])} or {able[-1]}"
            )
        tensors, vectorized = self._tensors(observations)
        masks = None if action_masks is None else self._masks(action_masks, tensors)
        with torch.no_grad():
            log_probs, values, critic = self.policy.critic_outputs(tensors, masks)
            advantages = self.estimator.advantages(critic, values, log_probs.exp())
        credit = [x.cpu().numpy() for x in (advantages, values, log_probs.exp())]
        return Credit(*(credit if vectorized else [x.squeeze(axis=0) for x in credit]))

    def _excluded_save_params(self) -> list[str]:
        # The schedule is made from `learning_rate`; the program that loads decides where events are written.
        return [*super()._excluded_save_params(), "estimator", "lr_schedule", "tensorboard_log", "after_minibatch"]
