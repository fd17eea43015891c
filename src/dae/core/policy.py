"""The policy's side of PPO: clipped surrogate, entropy and the KL divergence from the behaviour policy."""

from torch import Tensor, finfo, minimum, where

from dae.core.checks import require_actions, require_float, require_in_range, require_same_shape


def clipped_surrogate(log_probs: Tensor, advantages: Tensor, *, old_log_probs: Tensor, clip_range: float) -> Tensor:
    """Return PPO's clipped objective, a mean over frames to be maximised.

        L_π = mean min( ρ Â, clip(ρ, 1 − ε, 1 + ε) Â ),  ρ = π(a|s) / μ(a|s)

    All are of the actions taken, of one shape: log π, the advantages, log μ. Gradients flow into π (`log_probs`) only.
    """
    require_float(log_probs=log_probs, advantages=advantages, old_log_probs=old_log_probs)
    require_same_shape(log_probs=log_probs, advantages=advantages, old_log_probs=old_log_probs)
    require_in_range("clip_range", clip_range, 0)
    advantages = advantages.detach()
    ratio = (log_probs - old_log_probs.detach()).exp()
    return minimum(ratio * advantages, ratio.clamp(1 - clip_range, 1 + clip_range) * advantages).mean()


def entropy(log_probs: Tensor) -> Tensor:
    """Return H(π) = −Σ_a π(a|s) log π(a|s) of normalised log-probabilities (..., A).

    An action of probability 0 adds 0.
    """
    require_float(log_probs=log_probs)
    require_actions("log_probs", log_probs)
    return -(log_probs.exp() * log_probs.clamp(min=finfo(log_probs.dtype).min)).sum(-1)


def kl_divergence(log_probs: Tensor, *, old_log_probs: Tensor) -> Tensor:
    """Return KL(μ‖π) = Σ_a μ(a|s) (log μ(a|s) − log π(a|s)) of normalised log-probabilities (..., A).

    An action that μ never takes adds 0. Gradients flow into π (`log_probs`) only: μ is data.
    """
    require_float(log_probs=log_probs, old_log_probs=old_log_probs)
    require_actions("log_probs", log_probs)
    require_same_shape(log_probs=log_probs, old_log_probs=old_log_probs)
    old_log_probs = old_log_probs.detach()
    mu = old_log_probs.exp()
    return where(mu > 0, mu * (old_log_probs - log_probs), 0.0).sum(-1)
