"""Exact answers on finite MDPs, in numpy float64: what the estimators of the paper converge to.

An oracle for tests and a place to study: nothing here samples or learns, and nothing is shared with `dae.core`.
`docs/theory.md` tells the story; `dae theory` prints a worked case.
"""

from dae.theory.exact import (
    action_values,
    advantages,
    expected_rewards,
    merges,
    n_step_action_values,
    occupancies,
    reachable,
    state_values,
)
from dae.theory.examples import chain, impossibility_pair, merging_mdp, random_mdp, random_policy
from dae.theory.losses import (
    QuadraticLoss,
    bootstrapped_loss,
    monte_carlo_loss,
    suffix_loss,
    suffix_weights,
    theorem_2_advantages,
    theorem_2_weights,
)
from dae.theory.mdp import FiniteMDP, Trajectories, sample

__all__ = [
    "FiniteMDP",
    "QuadraticLoss",
    "Trajectories",
    "action_values",
    "advantages",
    "bootstrapped_loss",
    "chain",
    "expected_rewards",
    "impossibility_pair",
    "merges",
    "merging_mdp",
    "monte_carlo_loss",
    "n_step_action_values",
    "occupancies",
    "random_mdp",
    "random_policy",
    "reachable",
    "sample",
    "state_values",
    "suffix_loss",
    "suffix_weights",
    "theorem_2_advantages",
    "theorem_2_weights",
]
