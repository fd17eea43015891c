"""Targets and advantages computed from rewards along rows of steps."""

from torch import Tensor, where

from dae.core.checks import require_bool, require_float, require_in_range, require_rows, require_same_shape
from dae.core.scan import discounted_sums


def n_step_targets(
    rewards: Tensor, *, bootstrap: Tensor, terminated: Tensor, truncated: Tensor, gamma: float
) -> Tensor:
    """Return the longest n-step target of every step, (B, T).

        y_t = r_t + γ y_{t+1}                inside a segment
        y_t = r_t                            where terminated (also if truncated too)
        y_t = r_t + γ bootstrap_t            where truncated, and at the end of the row

    `bootstrap[b, t]` is the target value of the true successor of step t. It is read only in the third case; elsewhere
    it may hold anything, NaN included. It is a target: no gradient flows into it. (A NaN reward, in contrast, may spoil
    its whole row.)
    """
    require_float(rewards=rewards, bootstrap=bootstrap)
    require_bool(terminated=terminated, truncated=truncated)
    require_rows("rewards", rewards)
    require_same_shape(rewards=rewards, bootstrap=bootstrap, terminated=terminated, truncated=truncated)
    require_in_range("gamma", gamma, 0, 1)

    inside = _inside(terminated, truncated)
    cut = ~(inside | terminated)
    tail = where(cut, bootstrap.detach(), 0.0)
    return discounted_sums(rewards + gamma * tail, inside, gamma)


def gae(
    rewards: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    """Return generalised advantage estimates and the λ-returns they imply, (B, T) each.

        δ_t = r_t + γ V(s_{t+1}) − V(s_t)
        A_t = δ_t + γ λ A_{t+1}              inside a segment, δ_t at its end
        returns_t = A_t + V(s_t)

    V(s_{t+1}) is `values[t + 1]` inside a segment, 0 after a terminated step, and `bootstrap[t]` after a truncated step
    and at the end of the row. `bootstrap` is read nowhere else, and no gradient flows into it.
    """
    require_float(rewards=rewards, values=values, bootstrap=bootstrap)
    require_bool(terminated=terminated, truncated=truncated)
    require_rows("rewards", rewards)
    require_same_shape(rewards=rewards, values=values, bootstrap=bootstrap, terminated=terminated, truncated=truncated)
    require_in_range("gamma", gamma, 0, 1)
    require_in_range("lam", lam, 0, 1)

    inside = _inside(terminated, truncated)
    next_values = where(inside, values.roll(-1, -1), where(terminated, 0.0, bootstrap.detach()))
    deltas = rewards + gamma * next_values - values
    advantages = discounted_sums(deltas, inside, gamma * lam)
    return advantages, advantages + values


def later_advantages(advantages: Tensor, *, terminated: Tensor, truncated: Tensor, gamma: float, lam: float) -> Tensor:
    """Return what the advantages of later actions add to the estimate of a step, (B, T).

        L_t = Σ_{k ≥ 1} (γ λ)^k Â(s_{t+k}, a_{t+k})        within a segment

    `advantages` are those of the actions taken. Where Â is centred under the policy that acted, these sums have mean 0
    given s_t and a_t: subtracting any multiple of them from `gae` does not change its expectation, and removes noise as
    far as Â is right.
    """
    require_float(advantages=advantages)
    require_bool(terminated=terminated, truncated=truncated)
    require_rows("advantages", advantages)
    require_same_shape(advantages=advantages, terminated=terminated, truncated=truncated)
    require_in_range("gamma", gamma, 0, 1)
    require_in_range("lam", lam, 0, 1)
    return discounted_sums(advantages, _inside(terminated, truncated), gamma * lam) - advantages


def _inside(terminated: Tensor, truncated: Tensor) -> Tensor:
    """Mark the steps whose successor lies in the same row and segment."""
    inside = ~(terminated | truncated)
    inside[..., -1] = False
    return inside
