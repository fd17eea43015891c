"""What really follows from an action: rollouts of a policy from exactly restored states."""

from dae.experiments.monte_carlo.rollouts import (
    Outcomes as Outcomes,
    Plan as Plan,
    Simulator as Simulator,
    require_enumerable as require_enumerable,
)
from dae.experiments.monte_carlo.values import ActionValues as ActionValues, action_values as action_values
