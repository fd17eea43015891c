"""PPO with a pluggable advantage estimator: the algorithm, in the order of the paper's Algorithm 1."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import PyTorchObs
from stable_baselines3.common.utils import FloatSchedule, explained_variance, obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs
from torch import Tensor

from dae.agent import parallel
from dae.agent.actions import mask_reader_of, no_masks
from dae.agent.finite import (
    NotFiniteError,
    guarded_step,
    not_finite,
    require_finite,
    require_finite_observations,
)
from dae.agent.frames import stack_size
from dae.agent.interface import PPOInterface
from dae.agent.observations import stacked
from dae.agent.policy import Acted, Heads, acts_in_its_own_way
from dae.agent.rollout import Batch, Rollout, ends_of
from dae.core import clipped_surrogate, kl_divergence, n_step_targets
from dae.rules import FRACTION, require


class PPO(PPOInterface):
    """Proximal policy optimisation with `advantage` = "dae", "gae", "duel" or "indirect".

    Without `advantage` it is DAE, or GAE where DAE cannot work (continuous actions), which a warning says. It may also
    be an estimator's class, or an instance with options of its own. Everything else is as in `stable_baselines3.PPO`,
    also the defaults; `dae.paper_settings` has the paper's. `dae.hyperparameters.PPOOptions` has the additional
    arguments, and `dae.catalog` what estimators have in place of their defaults.

    For separate actor and critic networks pass `policy_kwargs={"share_features_extractor": False}`. DAE, Duel and
    Indirect train on rows of `row_length` steps of one actor, which bootstrap where they are cut, or on whole segments.

    Started by torchrun, with a process group, several processes train one agent: each has its own `env` and takes
    `batch_size` of its steps for a minibatch; the update is that of all of them (`dae.agent.parallel`), and
    `num_timesteps` counts the steps of all.
    """

    # Called after each minibatch with the share of the update that is done (on a GPU: that has been asked for). It is
    # for displays, belongs to the running program, and is not saved.
    after_minibatch: Callable[[float], None] | None = None

    # Algorithm 1, lines 3 to 7: sample trajectories. -----------------------------------------------------------------

    def collect_rollouts(  # type: ignore[override]
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: Rollout, n_rollout_steps: int
    ) -> bool:
        """Let all actors play `n_rollout_steps` steps with the current policy."""
        assert self._last_obs is not None, "No previous observation was provided"
        self.policy.set_training_mode(False)
        rollout_buffer.reset(stack_size(env))
        n_steps = 0
        if self.use_sde:
            self.policy.reset_noise(env.num_envs)
        callback.on_rollout_start()
        require_finite_observations(self._last_obs, self._steps_taken)
        read_masks = self.mask_reader(env)
        while n_steps < n_rollout_steps:
            if self.use_sde and self.sde_sample_freq > 0 and n_steps % self.sde_sample_freq == 0:
                self.policy.reset_noise(env.num_envs)
            obs_tensor, acted, masks = self.act(self._last_obs, read_masks())  # type: ignore[arg-type]
            actions, values, log_probs = acted.actions.cpu().numpy(), acted.values.unsqueeze(-1), acted.log_prob
            clipped_actions = self.within_bounds(actions)
            rollout_buffer.add_observations(obs_tensor)  # now: environments may use the array for the next ones
            new_obs, rewards, dones, infos = env.step(clipped_actions)
            self.num_timesteps += env.num_envs * parallel.size()
            require_finite(new_obs, rewards, self._steps_taken)

            # Callbacks read these names, as they do in Stable-Baselines3.
            callback.update_locals(locals())
            if not callback.on_step():
                return False

            dones = np.asarray(dones, bool)
            ended = np.flatnonzero(dones)
            self._update_info_buffer([infos[i] for i in ended], dones[ended])
            truncated = np.zeros_like(dones)
            if self.options.bootstrap_truncations:
                truncated[ended] = [is_truncated(infos[i]) for i in ended]
            self._bootstrap(np.flatnonzero(truncated), infos, n_steps)
            rollout_buffer.add(rewards, dones & ~truncated, truncated, acted, masks)
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

    @property
    def _steps_taken(self) -> int:
        """Steps that each environment has taken."""
        return self.num_timesteps // (self.n_envs * parallel.size())

    def act(
        self, observations: VecEnvObs, allowed: NDArray[np.bool_] | None
    ) -> tuple[PyTorchObs, Acted, Tensor | None]:
        """Choose actions for all environments; return them with the observations and masks that they follow."""
        with torch.no_grad():
            tensors = obs_as_tensor(observations, self.device)  # type: ignore[arg-type]
            masks = None if allowed is None else torch.from_numpy(allowed).to(self.device)
            return tensors, self.policy.act(tensors, masks), masks

    def mask_reader(self, env: VecEnv) -> Callable[[], NDArray[np.bool_] | None]:
        """Return a function that reads which actions the environments allow now; a policy that acts in its own way is
        not told, as in Stable-Baselines3."""
        return no_masks if acts_in_its_own_way(type(self.policy)) else mask_reader_of(env)

    def within_bounds(self, actions: NDArray[Any]) -> NDArray[Any]:
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
        last = stacked([infos[i]["terminal_observation"] for i in cut])
        require_finite_observations(last, self._steps_taken, cut)
        with torch.no_grad():
            values = self.policy.predict_values(obs_as_tensor(last, self.device)).reshape(-1)
        self.rollout_buffer.bootstrap[torch.as_tensor(cut, device=self.device), t] = values

    # Algorithm 1, lines 10 to 16: update. ----------------------------------------------------------------------------

    def train(self) -> None:
        """Update the policy and the critic with the current rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip_range = self.clip_range(self._current_progress_remaining)
        if self.clip_range_vf is not None:
            self.estimator.value_clip_range = self.clip_range_vf(self._current_progress_remaining)
        self.estimator.correction = FloatSchedule(self.correction)(self._current_progress_remaining)
        require("correction", self.estimator.correction, FRACTION)
        rollout = self.rollout_buffer
        self.estimator.prepare(rollout)
        evaluate = torch.compile(self.policy.evaluate) if self.options.torch_compile else self.policy.evaluate
        statistics: list[Tensor] = []
        broken = torch.zeros((), dtype=torch.bool, device=self.device)
        stop, learned = False, 0
        for epoch in range(self.n_epochs):
            for batch in self._minibatches():
                heads = evaluate(batch.observations, batch.actions, batch.masks).shaped(*batch.shape)
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
                # From the first non-finite gradient on, the weights stay unchanged, without waiting for the device.
                broken = broken | ~torch.isfinite(self._clip_gradients())
                guarded_step(self.policy.optimizer, broken)
                learned += batch.rewards.numel()
                if self.after_minibatch is not None:
                    self.after_minibatch(learned / (self.n_epochs * rollout.rewards.numel()))
            self._n_updates += 1
            if stop:
                if self.verbose >= 1:
                    print(f"Early stopping at step {epoch} due to reaching max kl: {float(measured[0]):.2f}")
                break
        self._require_finite_update(broken)
        self._log_update(torch.stack(statistics), clip_range)

    def train_on_restored(self, total_timesteps: int) -> None:
        """Update with a rollout that another process collected, in a run of so many steps."""
        self._total_timesteps = total_timesteps
        self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
        self.train()

    def _minibatches(self) -> Iterator[Batch]:
        options = self.options
        if options.minibatches == "segments":
            return self.rollout_buffer.segments(self.batch_size, drop_last=options.drop_last)
        return self.rollout_buffer.minibatches(self.estimator.info.batching, self.batch_size, options.row_length)

    def _clip_gradients(self) -> Tensor:
        """Clip the gradient to a norm of at most `max_grad_norm`; return its norm before clipping."""
        parameters = [p for p in self.policy.parameters() if p.grad is not None]
        if self.max_grad_norm is None:
            return torch.nn.utils.get_total_norm([p.grad for p in parameters])
        return torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)

    def _require_finite_update(self, broken: Tensor) -> None:
        if not_finite(dict(self.policy.named_parameters())) is not None:
            raise NotFiniteError(
                f"the weights are not finite after the update at {self.num_timesteps} steps: lower learning_rate"
            )
        if bool(broken):
            raise NotFiniteError(
                f"the loss or its gradient was not finite in the update after {self.num_timesteps} steps; the weights "
                "are those before that step: lower learning_rate, or scale the rewards down"
            )

    def _policy_loss(
        self, heads: Heads, batch: Batch, advantages: Tensor, clip_range: float
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the policy's loss, and how far the policy has moved: approximate KL, and the clipped fraction."""
        with torch.no_grad():
            log_ratio = heads.log_prob - batch.log_prob
            approximate_kl = (log_ratio.exp() - 1 - log_ratio).mean()
            clipped = ((log_ratio.exp() - 1).abs() > clip_range).float().mean()
        kl_coef = self.options.kl_coef
        if kl_coef is None:
            objective = clipped_surrogate(
                heads.log_prob, advantages, old_log_probs=batch.log_prob, clip_range=clip_range
            )
            return -objective, (approximate_kl, clipped)
        objective = ((heads.log_prob - batch.log_prob).exp() * advantages).mean()
        assert heads.log_probs is not None
        assert batch.log_probs is not None
        divergence = kl_divergence(heads.log_probs, old_log_probs=batch.log_probs).mean()
        return kl_coef * divergence - objective, (approximate_kl, clipped)

    def _log_update(self, statistics: Tensor, clip_range: float) -> None:
        """Record what Stable-Baselines3's PPO records; but for segments, an update waits for the device only here."""
        policy, critic, entropy, loss, kl, clipped = parallel.average(statistics.mean(0)).tolist()
        rollout = self.rollout_buffer
        targets = rollout.returns
        if targets is None:
            targets = n_step_targets(rollout.rewards, **ends_of(rollout), gamma=self.gamma)
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
        if self.clip_range_vf is not None:
            self.logger.record("train/clip_range_vf", self.clip_range_vf(self._current_progress_remaining))
        if self.estimator.info.takes_correction:
            self.logger.record("train/correction", self.estimator.correction)
            self.logger.record("train/control_weight", float(self.estimator.control_weight))


def is_truncated(info: dict[str, Any]) -> bool:
    """Say whether a time limit cut this episode; without its last observation there is nothing to bootstrap from."""
    return bool(info.get("TimeLimit.truncated", False)) and info.get("terminal_observation") is not None
