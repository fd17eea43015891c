"""The settings of the chain experiment: every field is an option of `dae synthetic`."""

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from dae.errors import UserError

Method = Literal["dae", "gae", "monte-carlo", "duel", "indirect"]


@dataclass(frozen=True)
class SyntheticConfig:
    """Train actor-critics on a chain of states, and compare their advantages with the true ones.

    Run the same command again to continue one that was stopped, or with more seeds or methods to add to it.
    """

    seeds: int = 10
    """Independent repetitions, with seeds 0, 1, …; the paper has 100."""
    methods: tuple[Method, ...] = ("dae", "gae")
    """How advantages are estimated: the paper's dae and gae; monte-carlo is DAE without values (Theorem 1)."""
    states: int = 128
    """Length of the chain."""
    swap_rewards: bool = True
    """Draw for every state and seed which of the two actions earns the reward; if not, it is always the first."""
    gamma: float = 0.99
    """Discount factor."""
    gae_lambda: float = 0.95
    """GAE's λ."""
    iterations: int = 1000
    """Updates of the policy."""
    trajectories: int = 4
    """Walks along the chain between two updates."""
    critic_steps: int = 4
    """Gradient steps of the critic per iteration, each on all walks of the iteration."""
    policy_steps: int = 1
    """Gradient steps of the policy per iteration."""
    critic_learning_rate: float = 0.001
    """Adam's step size for the critic."""
    policy_learning_rate: float = 0.01
    """Adam's step size for the policy."""
    adam_eps: float = 1e-3
    """Adam's ε."""
    hidden: int = 256
    """Width of the critic's two hidden layers."""
    device: str = "auto"
    """Device to compute on: auto, cpu, cuda."""
    threads: int = 0
    """Groups of seeds that train at the same time, one CPU core each; 0 for all cores."""
    out: Path = field(default_factory=lambda: Path("synthetic"))
    """Folder for data, figures and summary."""

    def checked(self) -> Self:
        """Refuse settings that cannot work."""
        counts = ("seeds", "states", "iterations", "trajectories", "critic_steps", "policy_steps", "hidden")
        rates = ("critic_learning_rate", "policy_learning_rate", "adam_eps")
        rules = [(name, "at least 1", getattr(self, name) >= 1) for name in counts]
        rules += [(name, "positive and finite", 0 < getattr(self, name) < math.inf) for name in rates]
        rules += [(name, "in [0, 1]", 0 <= getattr(self, name) <= 1) for name in ("gamma", "gae_lambda")]
        rules += [("threads", "at least 0", self.threads >= 0), ("methods", "at least one", bool(self.methods))]
        rules += [("methods", "named once each", len(set(self.methods)) == len(self.methods))]
        for name, rule, holds in rules:
            if not holds:
                raise UserError(f"{name} is {getattr(self, name)!r}: it must be {rule}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the settings that decide the numbers of a seed."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in _NOT_PART_OF_A_SEED}


_NOT_PART_OF_A_SEED = ("seeds", "methods", "device", "threads", "out")
