"""π-centred functions: what makes an action-dependent function an advantage."""

from collections.abc import Callable

import torch
from torch import Tensor

from dae.core.checks import require_actions, require_float, require_in_range, require_same_shape
from dae.core.precision import at_least_float32


def center(f: Tensor, probs: Tensor) -> Tensor:
    """Return f(s, a) − Σ_a' π(a'|s) f(s, a'), the π-centred version of f.

    `f` and `probs` are (..., A). Gradients flow through the sum as well.

    >>> import torch
    >>> center(torch.tensor([1.0, 0.0]), torch.tensor([0.25, 0.75]))
    tensor([ 0.7500, -0.2500])
    """
    require_float(f=f, probs=probs)
    require_actions("f", f)
    require_same_shape(f=f, probs=probs)
    return f - (probs * f).sum(-1, keepdim=True)


def normalize_advantages(
    advantages: Tensor, probs: Tensor, *, eps: float = 1e-5, mean: Callable[[Tensor], Tensor] = torch.mean
) -> Tensor:
    """Return centred advantages of all actions, (..., A), divided by their typical size under the policy.

        Â(s, a) / ( sqrt( mean_s Σ_a μ(a|s) Â(s, a)² ) + eps )

    The expectation over actions is exact, and no mean is subtracted: centred advantages have none. The result weights
    the policy update and carries no gradient. `mean` takes the mean over states: by default those of this tensor;
    processes that share a minibatch pass one that covers the states of all processes.
    """
    require_float(advantages=advantages, probs=probs)
    require_actions("advantages", advantages)
    require_same_shape(advantages=advantages, probs=probs)
    require_in_range("eps", eps, 0)
    weights, values = at_least_float32(probs.detach()), at_least_float32(advantages.detach())
    scale = mean((weights * values.square()).sum(-1)).sqrt()
    return (values / (scale + eps)).to(advantages.dtype)
