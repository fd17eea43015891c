"""The critic losses of the paper: DAE with and without a value function, and the two of its ablation.

Gradients flow into advantages, values and Q-values; `bootstrap` is a target and receives none. Half precision is
computed, and the loss returned, in float32.
"""

from torch import Tensor, where
from torch.nn.functional import mse_loss

from dae.core.checks import require_bool, require_float, require_in_range, require_rows, require_same_shape
from dae.core.precision import at_least_float32
from dae.core.returns import n_step_targets
from dae.core.scan import discounted_sums


def dae_loss(
    rewards: Tensor,
    advantages: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
) -> Tensor:
    """Return the DAE loss, a mean over all frames.

        L_A = mean_t ( Σ_{t'=t}^{n-1} γ^{t'-t} (r_t' − Â(s_t', a_t')) + γ^{n-t} V_target(s_n) − V̂(s_t) )²

    Here n is the end of the segment that step t lies in. All arguments are (B, T); `advantages` are those of the
    actions taken, centred with the policy that took them (`dae.center`). See `n_step_targets` on how segments end.

    >>> import torch
    >>> rewards, values = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 0.5]])
    >>> never = torch.zeros(1, 2, dtype=torch.bool)
    >>> ends = {"bootstrap": torch.ones(1, 2), "terminated": never, "truncated": never}
    >>> dae_loss(rewards, torch.zeros(1, 2), values, **ends, gamma=0.5)
    tensor(3.5312)
    """
    require_float(rewards=rewards, advantages=advantages, values=values, bootstrap=bootstrap)
    require_same_shape(rewards=rewards, advantages=advantages, values=values)
    rewards, advantages, values, bootstrap = map(at_least_float32, (rewards, advantages, values, bootstrap))
    targets = n_step_targets(
        rewards - advantages, bootstrap=bootstrap, terminated=terminated, truncated=truncated, gamma=gamma
    )
    return mse_loss(values, targets)


def monte_carlo_dae_loss(
    rewards: Tensor, advantages: Tensor, *, terminated: Tensor, truncated: Tensor, gamma: float
) -> Tensor:
    """Return the DAE loss without a value function, a mean over whole episodes.

        L = mean_τ ( Σ_{t≥0} γ^t (r_t − Â(s_t, a_t)) )²

    A row starts with the start of an episode and may hold several. Only episodes that end in a terminated step have a
    known return: the others (truncated, unfinished, or padding behind the last one) are left out and may hold anything.
    Without a whole episode there is no loss, and the result is NaN.
    """
    require_float(rewards=rewards, advantages=advantages)
    require_bool(terminated=terminated, truncated=truncated)
    require_rows("rewards", rewards)
    require_same_shape(rewards=rewards, advantages=advantages, terminated=terminated, truncated=truncated)
    require_in_range("gamma", gamma, 0, 1)
    rewards, advantages = at_least_float32(rewards), at_least_float32(advantages)

    inside = ~(terminated | truncated)
    whole = discounted_sums(terminated.to(rewards.dtype), inside, 1) > 0
    starts = ~inside.roll(1, -1)
    starts[:, 0] = True
    episodes = starts & whole
    returns = discounted_sums(where(whole, rewards - advantages, 0.0), inside, gamma)
    return where(episodes, returns, 0.0).square().sum() / episodes.sum()


def duel_loss(
    rewards: Tensor,
    advantages: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
) -> Tensor:
    """Return the n-step dueling loss: like DAE, but every advantage explains only its own step.

        L = mean_t ( y_t − Â(s_t, a_t) − V̂(s_t) )²,  y_t the n-step target

    Arguments as for `dae_loss`.
    """
    require_float(rewards=rewards, advantages=advantages, values=values, bootstrap=bootstrap)
    require_same_shape(rewards=rewards, advantages=advantages, values=values)
    rewards, advantages, values, bootstrap = map(at_least_float32, (rewards, advantages, values, bootstrap))
    targets = n_step_targets(rewards, bootstrap=bootstrap, terminated=terminated, truncated=truncated, gamma=gamma)
    return mse_loss(values + advantages, targets)


def indirect_loss(
    rewards: Tensor,
    q_values: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
) -> Tensor:
    """Return the loss that learns Q and V separately; the advantage is then Q̂(s, a) − V̂(s).

        L = ½ [ mean_t (y_t − V̂(s_t))² + mean_t (y_t − Q̂(s_t, a_t))² ],  y_t the n-step target

    `q_values` are those of the actions taken, (B, T); the rest as for `dae_loss`.
    """
    require_float(rewards=rewards, q_values=q_values, values=values, bootstrap=bootstrap)
    require_same_shape(rewards=rewards, q_values=q_values, values=values)
    rewards, q_values, values, bootstrap = map(at_least_float32, (rewards, q_values, values, bootstrap))
    targets = n_step_targets(rewards, bootstrap=bootstrap, terminated=terminated, truncated=truncated, gamma=gamma)
    return 0.5 * (mse_loss(values, targets) + mse_loss(q_values, targets))
