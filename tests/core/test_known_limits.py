"""New mathematics pinned to old: what DAE and GAE become at their limits."""

import torch

from dae import core
from tests.core.reference import random_segments

GAMMA = 0.95
SEGMENTS = random_segments(6, 40, terminated=0.1, truncated=0.1, dtype=torch.float64)


def test_dae_with_zero_advantages_is_the_n_step_value_loss() -> None:
    s = SEGMENTS
    targets = core.n_step_targets(s.rewards, **s.ends, gamma=GAMMA)
    loss = core.dae_loss(s.rewards, torch.zeros_like(s.rewards), s.values, **s.ends, gamma=GAMMA)
    torch.testing.assert_close(loss, (targets - s.values).square().mean())


def test_dae_on_one_step_rollouts_is_dueling() -> None:
    s = random_segments(50, 1, terminated=0.3, truncated=0.3, dtype=torch.float64)
    one_step = s.rewards + GAMMA * s.bootstrap * ~s.terminated
    dueling = (s.values + s.advantages - one_step).square().mean()
    for loss in (core.dae_loss, core.duel_loss):
        torch.testing.assert_close(loss(s.rewards, s.advantages, s.values, **s.ends, gamma=GAMMA), dueling)


def test_dae_with_gamma_zero_is_reward_regression() -> None:
    s = SEGMENTS
    loss = core.dae_loss(s.rewards, s.advantages, s.values, **s.ends, gamma=0)
    torch.testing.assert_close(loss, (s.rewards - s.advantages - s.values).square().mean())


def test_gae_with_lambda_one_is_the_n_step_advantage() -> None:
    s = SEGMENTS
    advantages, returns = core.gae(s.rewards, s.values, **s.ends, gamma=GAMMA, lam=1)
    targets = core.n_step_targets(s.rewards, **s.ends, gamma=GAMMA)
    torch.testing.assert_close(advantages, targets - s.values)
    torch.testing.assert_close(returns, targets)


def test_gae_with_lambda_zero_is_the_temporal_difference_error() -> None:
    s = SEGMENTS
    advantages, _ = core.gae(s.rewards, s.values, **s.ends, gamma=GAMMA, lam=0)
    following = torch.cat([s.values[:, 1:], s.bootstrap[:, -1:]], 1)
    following = torch.where(s.truncated, s.bootstrap, following) * ~s.terminated
    torch.testing.assert_close(advantages, s.rewards + GAMMA * following - s.values)


def test_dae_loss_is_gae_one_with_rewards_less_advantages() -> None:
    """The residual of DAE is the λ = 1 advantage of the rewards that the advantages have been taken from."""
    s = SEGMENTS
    residual, _ = core.gae(s.rewards - s.advantages, s.values, **s.ends, gamma=GAMMA, lam=1)
    loss = core.dae_loss(s.rewards, s.advantages, s.values, **s.ends, gamma=GAMMA)
    torch.testing.assert_close(loss, residual.square().mean())
