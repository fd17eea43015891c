"""Exact answers on finite MDPs, in numpy float64: what the estimators of the paper converge to.

An oracle for tests and a place to study: nothing here samples or learns, and nothing is shared with `dae.core`.
`docs/theory.md` explains it; `dae theory` prints a worked case.
"""

from dae.theory.exact import (
    action_values as action_values,
    advantages as advantages,
    expected_rewards as expected_rewards,
    merges as merges,
    n_step_action_values as n_step_action_values,
    occupancies as occupancies,
    reachable as reachable,
    state_values as state_values,
)
from dae.theory.examples import (
    chain as chain,
    impossibility_pair as impossibility_pair,
    merging_mdp as merging_mdp,
    random_mdp as random_mdp,
    random_policy as random_policy,
)
from dae.theory.losses import (
    QuadraticLoss as QuadraticLoss,
    bootstrapped_loss as bootstrapped_loss,
    monte_carlo_loss as monte_carlo_loss,
    suffix_loss as suffix_loss,
    suffix_weights as suffix_weights,
    theorem_2_advantages as theorem_2_advantages,
    theorem_2_weights as theorem_2_weights,
)
from dae.theory.mdp import FiniteMDP as FiniteMDP, Trajectories as Trajectories, sample as sample
