"""PPO with a pluggable advantage estimator, for users of Stable-Baselines3."""

import warnings
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, PyTorchObs, Schedule
from stable_baselines3.common.utils import FloatSchedule, explained_variance, obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from dae.agent import parallel
from dae.agent.allocator import keep_freed_memory
from dae.agent.estimators import ESTIMATORS
from dae.agent.finite import NotFiniteError, guarded_step, require_finite
from dae.agent.policy import CnnPolicy, CriticHeadMixin, MlpPolicy, MultiInputPolicy
from dae.agent.rollout import Rollout
from dae.agent.saving import SafeSaving
from dae.agent.settings import check_arguments, check_settings, resolve_defaults
from dae.core import clipped_surrogate, kl_divergence, n_step_targets

_SB3_POLICIES: dict[type[BasePolicy], type[CriticHeadMixin]] = {
    ActorCriticPolicy: MlpPolicy,
    ActorCriticCnnPolicy: CnnPolicy,
    MultiInputActorCriticPolicy: MultiInputPolicy,
}


class Credit(NamedTuple):
    """What an agent thinks of the actions in a batch of states."""

    advantages: NDArray[np.float32]  # (N, A): Â(s, ·)
    values: NDArray[np.float32]  # (N,): V̂(s)
    probabilities: NDArray[np.float32]  # (N, A): π(·|s)


class PPO(SafeSaving, OnPolicyAlgorithm):
    """Proximal policy optimisation with `advantage` = "dae" (the default), "gae", "duel" or "indirect".

    Everything else is as in `stable_baselines3.PPO`. What is left out takes the estimator's default: for GAE those of
    Stable-Baselines3, for the others the paper's (`dae.agent.settings`). Beyond its arguments there are

    - `kl_coef`: replace clipping by this multiple of KL(μ‖π),
    - `bootstrap_truncations`: False treats a time limit like the end of the game, as the authors' code does,
    - `torch_compile`: compile the network's part of the update.

    Separate networks for actor and critic are `policy_kwargs={"share_features_extractor": False}`. DAE, Duel and
    Indirect train on an actor's whole row of `n_steps` steps; a `batch_size` below that cuts rows into pieces of so
    many steps, which bootstrap where they are cut.

    Started by torchrun, with a process group, several processes train one agent: each has its own `env` and takes
    `batch_size` of its frames for a minibatch; the update is that of all of them (`dae.agent.parallel`), and
    `num_timesteps` counts the steps of all.
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

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str | None,
        learning_rate: float | Schedule | None = None,
        n_steps: int | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: float | Schedule | None = None,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
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
        advantage: str = "dae",
        kl_coef: float | None = None,
        bootstrap_truncations: bool = True,
        torch_compile: bool = False,
    ) -> None:
        check_arguments(policy, env, advantage, _init_setup_model)
        if rollout_buffer_class is not None or rollout_buffer_kwargs is not None:
            raise ValueError(
                "rollout_buffer_class and rollout_buffer_kwargs are not taken: the estimators read rows of "
                "trajectories, which dae.agent.Rollout keeps"
            )
        settings = resolve_defaults(
            advantage,
            learning_rate=learning_rate,
            n_steps=n_steps,
            batch_size=batch_size,
            n_epochs=n_epochs,
            clip_range=clip_range,
            ent_coef=ent_coef,
            vf_coef=vf_coef,
            max_grad_norm=max_grad_norm,
        )
        super().__init__(
            policy=_SB3_POLICIES.get(policy, policy) if isinstance(policy, type) else policy,
            env=env,  # type: ignore[arg-type]
            learning_rate=settings["learning_rate"],
            n_steps=settings["n_steps"],
            gamma=gamma,
            gae_lambda=gae_lambda,
            ent_coef=settings["ent_coef"],
            vf_coef=settings["vf_coef"],
            max_grad_norm=settings["max_grad_norm"],
            use_sde=use_sde,
            sde_sample_freq=sde_sample_freq,
            stats_window_size=stats_window_size,
            tensorboard_log=None if tensorboard_log is None else str(tensorboard_log),
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            device=device,
            seed=seed,
            _init_setup_model=False,
            supported_action_spaces=(spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary),
        )
        self.advantage = advantage
        self.batch_size: int = settings["batch_size"]
        self.n_epochs: int = settings["n_epochs"]
        self.clip_range = settings["clip_range"]
        self.clip_range_vf = clip_range_vf  # type: ignore[assignment]
        self.normalize_advantage = normalize_advantage
        self.target_kl = target_kl
        self.kl_coef = kl_coef
        self.bootstrap_truncations = bootstrap_truncations
        self.torch_compile = torch_compile
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        check_settings(self)
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.clip_range = FloatSchedule(self.clip_range)
        if self.clip_range_vf is not None:
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)
        self.estimator = ESTIMATORS[self.advantage](
            gamma=self.gamma, lam=self.gae_lambda, normalize=self.normalize_advantage
        )
        self.rollout_buffer = Rollout(self.n_steps, self.n_envs, self.observation_space, self.action_space, self.device)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            use_sde=self.use_sde,
            critic_head=self.estimator.head,
            **self.policy_kwargs,
        ).to(self.device)
        parallel.begin(self.policy, self.seed)
        if self.device.type == "cpu":
            keep_freed_memory()
        self._maybe_recommend_cpu("MlpPolicy")

    # Algorithm 1, lines 3 to 7: sample trajectories. -----------------------------------------------------------------

    def collect_rollouts(  # type: ignore[override]
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: Rollout, n_rollout_steps: int
    ) -> bool:
        """Let all actors play `n_rollout_steps` steps with the current policy."""
        assert self._last_obs is not None, "No previous observation was provided"
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        n_steps = 0
        if self.use_sde:
            self.policy.reset_noise(env.num_envs)
        callback.on_rollout_start()
        while n_steps < n_rollout_steps:
            if self.use_sde and self.sde_sample_freq > 0 and n_steps % self.sde_sample_freq == 0:
                self.policy.reset_noise(env.num_envs)
            with torch.no_grad():
                obs_tensor = obs_as_tensor(self._last_obs, self.device)  # type: ignore[arg-type]
                taken, values, log_probs, all_log_probs = self.policy.act(obs_tensor)
                values = values.unsqueeze(-1)  # the shape that callbacks know
            actions = taken.cpu().numpy()
            clipped_actions = self._within_bounds(actions)
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            self.num_timesteps += env.num_envs * parallel.size()
            require_finite(new_obs, rewards, self.num_timesteps // (env.num_envs * parallel.size()))

            # Callbacks read these names, as they do in Stable-Baselines3.
            callback.update_locals(locals())
            if not callback.on_step():
                return False

            dones = np.asarray(dones, bool)
            ended = np.flatnonzero(dones)
            self._update_info_buffer([infos[i] for i in ended], dones[ended])
            truncated = np.zeros_like(dones)
            if self.bootstrap_truncations:
                truncated[ended] = [_is_truncated(infos[i]) for i in ended]
            self._bootstrap(np.flatnonzero(truncated), infos, n_steps)
            rollout_buffer.add(
                obs_tensor, taken, rewards, dones & ~truncated, truncated, values, log_probs, all_log_probs
            )
            n_steps += 1
            self._last_obs = new_obs  # type: ignore[assignment]
            self._last_episode_starts = dones

        # Lines 8 and 9: V_target and μ are those of the policy that acted, fixed for all epochs.
        with torch.no_grad():
            values = self.policy.predict_values(obs_as_tensor(new_obs, self.device))  # type: ignore[arg-type]
        rollout_buffer.finish(values)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _within_bounds(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Fit continuous actions to the action space; the distribution they come from has no bounds."""
        if not isinstance(self.action_space, spaces.Box):
            return actions
        if self.policy.squash_output:
            return self.policy.unscale_action(actions)
        clipped: NDArray[Any] = np.clip(actions, self.action_space.low, self.action_space.high)
        return clipped

    def _bootstrap(self, cut: NDArray[np.intp], infos: list[dict[str, Any]], t: int) -> None:
        """Store the value of the last states of truncated episodes, which no row of the rollout holds."""
        if not cut.size:
            return
        last = [infos[i]["terminal_observation"] for i in cut]
        stacked = (
            {key: np.stack([o[key] for o in last]) for key in last[0]} if isinstance(last[0], dict) else np.stack(last)
        )
        with torch.no_grad():
            values = self.policy.predict_values(obs_as_tensor(stacked, self.device)).reshape(-1)
        self.rollout_buffer.bootstrap[torch.as_tensor(cut, device=self.device), t] = values

    # Algorithm 1, lines 10 to 16: update. ----------------------------------------------------------------------------

    def train(self) -> None:
        """Update the policy and the critic with the current rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip_range = self.clip_range(self._current_progress_remaining)
        if self.clip_range_vf is not None:
            self.estimator.value_clip_range = self.clip_range_vf(self._current_progress_remaining)
        rollout = self.rollout_buffer
        self.estimator.prepare(rollout)
        evaluate = torch.compile(self.policy.evaluate) if self.torch_compile else self.policy.evaluate
        statistics: list[Tensor] = []
        broken = torch.zeros((), dtype=torch.bool, device=self.device)
        stop = False
        for _ in range(self.n_epochs):
            for batch in rollout.minibatches(self.estimator.batching, self.batch_size):
                heads = evaluate(batch.observations, batch.actions).shaped(*batch.shape)
                estimate = self.estimator(heads, batch)
                policy_loss, measured = self._policy_loss(heads, batch, estimate.advantages, clip_range)
                entropy_loss = -heads.entropy.mean()
                loss = policy_loss + self.ent_coef * entropy_loss + self.vf_coef * estimate.critic_loss
                with torch.no_grad():
                    statistics.append(torch.stack((policy_loss, estimate.critic_loss, entropy_loss, loss, *measured)))
                stop = self.target_kl is not None and bool(parallel.average(measured[0]) > 1.5 * self.target_kl)
                if stop:
                    break
                self.policy.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                parallel.average_gradients(self.policy.parameters())
                # From the first gradient that is not finite the weights stay as they are; the device is not waited for.
                broken = broken | ~torch.isfinite(self._clip_gradients())
                guarded_step(self.policy.optimizer, broken)
            self._n_updates += 1
            if stop:
                break
        self._require_finite_update(broken)
        self._log_update(torch.stack(statistics), clip_range)

    def _clip_gradients(self) -> Tensor:
        """Return the norm of the gradient, which is made at most `max_grad_norm`."""
        parameters = [p for p in self.policy.parameters() if p.grad is not None]
        if self.max_grad_norm is None:
            return torch.nn.utils.get_total_norm([p.grad for p in parameters])
        return torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)

    def _require_finite_update(self, broken: Tensor) -> None:
        if bool(broken):
            raise NotFiniteError(
                f"the loss or its gradient was not finite in the update after {self.num_timesteps} frames; the weights "
                "are those before that step: lower learning_rate, or scale the rewards down"
            )

    def _policy_loss(
        self, heads: Any, batch: Any, advantages: Tensor, clip_range: float
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the policy's loss, and how far the policy has moved: approximate KL, and the clipped fraction."""
        with torch.no_grad():
            log_ratio = heads.log_prob - batch.log_prob
            approximate_kl = (log_ratio.exp() - 1 - log_ratio).mean()
            clipped = ((log_ratio.exp() - 1).abs() > clip_range).float().mean()
        if self.kl_coef is None:
            objective = clipped_surrogate(
                heads.log_prob, advantages, old_log_probs=batch.log_prob, clip_range=clip_range
            )
            return -objective, (approximate_kl, clipped)
        objective = ((heads.log_prob - batch.log_prob).exp() * advantages).mean()
        divergence = kl_divergence(heads.log_probs, old_log_probs=batch.log_probs).mean()
        return self.kl_coef * divergence - objective, (approximate_kl, clipped)

    def _log_update(self, statistics: Tensor, clip_range: float) -> None:
        """Record what Stable-Baselines3's PPO records; the only time an update waits for the device."""
        policy, critic, entropy, loss, kl, clipped = parallel.average(statistics.mean(0)).tolist()
        rollout = self.rollout_buffer
        targets = rollout.returns
        if targets is None:
            ends = {"bootstrap": rollout.bootstrap, "terminated": rollout.terminated, "truncated": rollout.truncated}
            targets = n_step_targets(rollout.rewards, **ends, gamma=self.gamma)
        variance = explained_variance(rollout.values.flatten().cpu().numpy(), targets.flatten().cpu().numpy())
        self.logger.record("train/entropy_loss", entropy)
        self.logger.record("train/policy_gradient_loss", policy)
        self.logger.record("train/value_loss", critic)
        self.logger.record("train/approx_kl", kl)
        self.logger.record("train/clip_fraction", clipped)
        self.logger.record("train/loss", loss)
        self.logger.record("train/explained_variance", variance)
        if hasattr(self.policy, "log_std"):
            self.logger.record("train/std", torch.exp(self.policy.log_std).mean().item())
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/clip_range", clip_range)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "PPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> "PPO":
        """Train for at least `total_timesteps` steps, counted over all environments."""
        anew = reset_num_timesteps or self.num_timesteps == 0
        n_envs = self.n_envs * parallel.size()
        if anew and total_timesteps <= self.n_steps * n_envs and self.lr_schedule(0.0) == 0:
            warnings.warn(
                f"learn({total_timesteps}) covers one rollout ({self.n_steps} steps x {n_envs} environments), and "
                "the learning rate falls to 0 over a call of learn: nothing is learned; give more steps, or a constant "
                "learning_rate",
                stacklevel=2,
            )
        super().learn(total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar)
        return self

    def advantages(self, observations: NDArray[Any] | dict[str, NDArray[Any]]) -> Credit:
        """Return Â(s, ·), V̂(s) and π(·|s) of a batch of observations: which actions matter, and how much."""
        if self.estimator.head is None:
            raise ValueError(
                f"advantage={self.advantage!r} models no advantages of its own; train with 'dae', 'duel' or 'indirect'"
            )
        self.policy.set_training_mode(False)
        tensors: PyTorchObs
        tensors, vectorized = self.policy.obs_to_tensor(observations)
        if not vectorized:
            raise ValueError("observations must be a batch: add a first axis, observation[None]")
        with torch.no_grad():
            log_probs, values, critic = self.policy.critic_outputs(tensors)
            advantages = self.estimator.advantages(critic, values, log_probs.exp())
        return Credit(*(x.cpu().numpy() for x in (advantages, values, log_probs.exp())))

    def _excluded_save_params(self) -> list[str]:
        # The schedule is made from `learning_rate`; where events are written is for the one who loads to say.
        return [*super()._excluded_save_params(), "estimator", "lr_schedule", "tensorboard_log"]


def _is_truncated(info: dict[str, Any]) -> bool:
    """Say whether a time limit cut this episode; without its last observation there is nothing to bootstrap from."""
    return bool(info.get("TimeLimit.truncated", False)) and info.get("terminal_observation") is not None
