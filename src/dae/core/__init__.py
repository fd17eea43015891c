"""The mathematics of advantage estimation as pure functions on PyTorch tensors.

Everything is batch-first: rewards, values and flags have shape (B, T), one row per actor and one column per time step;
whatever concerns all actions has one axis more. A row may hold many episodes. `terminated` and `truncated` mark their
last steps: after a terminated step nothing follows; after a truncated one, and after the last column, the rest of the
return is replaced by `bootstrap`, the target value of the true successor state.
"""

from dae.core.centering import center as center, normalize_advantages as normalize_advantages
from dae.core.losses import (
    dae_loss as dae_loss,
    duel_loss as duel_loss,
    indirect_loss as indirect_loss,
    monte_carlo_dae_loss as monte_carlo_dae_loss,
)
from dae.core.policy import clipped_surrogate as clipped_surrogate, entropy as entropy, kl_divergence as kl_divergence
from dae.core.returns import (
    gae as gae,
    later_advantages as later_advantages,
    n_step_targets as n_step_targets,
)
