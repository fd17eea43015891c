"""Critics that estimate the advantages of one policy, and the rollouts that all of them learn from and look at."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.utils import FloatSchedule, obs_as_tensor, update_learning_rate
from torch import Tensor

from dae.agent import PPO
from dae.agent.actions import Choices
from dae.agent.estimators import AdvantageEstimator, make_estimator
from dae.agent.frames import stack_size
from dae.agent.observations import stacked
from dae.agent.policy import CriticHeadMixin, Heads
from dae.agent.ppo import is_truncated
from dae.agent.rollout import Batch, Rollout
from dae.experiments.monte_carlo import Simulator

_AT_ONCE = 4096  # steps that a network looks at


@dataclass(frozen=True)
class Critic:
    """A network, and the estimator that makes advantages of what it says; the policy is that of the agent."""

    network: CriticHeadMixin
    estimator: AdvantageEstimator


def critic_of(model: PPO) -> Critic:
    """Return the agent's own critic, as it is, with the correction that it is trained with."""
    estimator = _configured(copy.deepcopy(model.estimator), model)
    if estimator.info.takes_correction:
        estimator.correction = FloatSchedule(model.correction)(model._current_progress_remaining)
    return Critic(model.policy, estimator)


def new_critic(model: PPO, advantage: str) -> Critic:
    """Return a critic that knows nothing yet, with a network like the agent's; it is not corrected, as in the paper."""
    estimator = _configured(make_estimator(advantage), model)
    return Critic(model.new_critic(estimator.head), estimator)


def uncorrected(critic: Critic) -> Critic | None:
    """Return the same critic without the correction by what followed: what the network itself says.

    None if that is what it is already.
    """
    if not critic.estimator.correction:
        return None
    plain = copy.copy(critic.estimator)
    plain.correction = 0.0
    return Critic(critic.network, plain)


def _configured(estimator: AdvantageEstimator, model: PPO) -> AdvantageEstimator:
    """Let an estimator work as in the agent's updates, but keep the scale of its advantages."""
    choices = Choices.of(model.action_space)
    estimator.configure(gamma=model.gamma, lam=model.gae_lambda, normalize=False, choices=choices)
    return estimator


class Rows:
    """Rollouts of the agent in all environments at once, which each critic sees with its own values."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator, self._model = simulator, simulator.model
        env, self._device = simulator.env, simulator.model.device
        self.rollout = Rollout(
            self._model.n_steps,
            env.num_envs,
            env.observation_space,
            env.action_space,
            self._device,
            has_head=True,
            n_stack=stack_size(env),
        )

    def collect(self, observations: Any, first_actions: NDArray[np.int64] | None = None) -> Any:
        """Let the agent act from here on, but first do something else if that is given; return what is seen then."""
        env, bootstraps = self._simulator.env, self._model.options.bootstrap_truncations
        self.rollout.reset()
        self._cut: list[tuple[NDArray[np.intp], int, Any]] = []  # where time limits ended episodes, and what was seen
        for t in range(self.rollout.n_steps):
            seen, acted, _ = self._model.act(observations, None)
            if t == 0 and first_actions is not None:
                actions = torch.as_tensor(first_actions, device=self._device)
                assert acted.log_probs is not None
                acted = acted._replace(
                    actions=actions, log_prob=acted.log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
                )
            self.rollout.add_observations(seen)
            observations, rewards, dones, infos = env.step(acted.actions.cpu().numpy())
            truncated = np.array([bootstraps and bool(done) and is_truncated(infos[i]) for i, done in enumerate(dones)])
            if truncated.any():
                last = [infos[i]["terminal_observation"] for i in np.flatnonzero(truncated)]
                self._cut.append((np.flatnonzero(truncated), t, stacked(last)))
            self.rollout.add(rewards, dones & ~truncated, truncated, acted)
        self._last = observations
        return observations

    def see_as(self, critic: Critic) -> None:
        """Let a critic value all states, and its estimator prepare the rollout."""
        rollout = self.rollout
        critic.network.set_training_mode(False)
        with torch.no_grad():
            parts = [self._outputs(critic, batch) for batch in rollout.rows(_AT_ONCE)]
            rollout.values = torch.cat([values for values, _ in parts])
            outputs = [output for _, output in parts if output is not None]
            rollout.critic = torch.cat(outputs) if outputs else None
            rollout.advantages = rollout.returns = None
            for rows, t, seen in self._cut:
                rollout.bootstrap[torch.from_numpy(rows).to(self._device), t] = self._values(critic, seen)
            rollout.finish(self._values(critic, self._last))
            critic.estimator.prepare(rollout)

    def _outputs(self, critic: Critic, batch: Batch) -> tuple[Tensor, Tensor | None]:
        heads = critic.network.evaluate(batch.observations, batch.actions).shaped(*batch.shape)
        return heads.values, heads.critic

    def _values(self, critic: Critic, observations: Any) -> Tensor:
        return critic.network.predict_values(obs_as_tensor(observations, self._device)).flatten()

    def first_estimates(self, critic: Critic) -> Tensor:
        """Return the advantages of the first step of each row, (B,), as the agent's policy would learn from them."""
        self.see_as(critic)
        with torch.no_grad():
            return torch.cat([_estimate(critic, batch)[:, 0] for batch in self.rollout.rows(_AT_ONCE)])

    def teach(self, critic: Critic, learning_rate: float) -> None:
        """Let a critic learn from the rollout, from whole rows where it needs trajectories; the policy stays as it is.

        Minibatches, epochs, and the weight and the largest norm of the gradient are those of the agent.
        """
        self.see_as(critic)
        network = critic.network
        network.set_training_mode(True)
        update_learning_rate(network.optimizer, learning_rate)
        for batch in self._minibatches(critic):
            heads = network.evaluate(batch.observations, batch.actions).shaped(*batch.shape)
            acting = replace(heads, log_prob=batch.log_prob, log_probs=batch.log_probs)
            network.optimizer.zero_grad()
            loss = self._model.vf_coef * critic.estimator(acting, batch).critic_loss
            loss.backward()  # type: ignore[no-untyped-call]
            if self._model.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(network.parameters(), self._model.max_grad_norm)
            network.optimizer.step()

    def _minibatches(self, critic: Critic) -> Iterator[Batch]:
        for _ in range(self._model.n_epochs):
            yield from self.rollout.minibatches(critic.estimator.info.batching, self._model.batch_size)


def _estimate(critic: Critic, batch: Batch) -> Tensor:
    """Return the advantages of a batch of rows that the critic has seen already."""
    unused = torch.zeros_like(batch.values)
    heads = Heads(batch.values, batch.log_prob, unused, batch.log_probs, batch.critic)
    return critic.estimator(heads, batch).advantages
