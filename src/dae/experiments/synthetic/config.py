"""The settings of the chain experiment: every field is an option of `dae synthetic`."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro

from dae.rules import COUNT, EACH_ONCE, FRACTION, NOT_NEGATIVE, POSITIVE, Rule, ruled
from dae.runs.settings import DEVICE
from dae.terminal.options import choice

METHODS = Rule("one or more, each named once", lambda names: bool(names) and EACH_ONCE.holds(names))
Method = Literal["dae", "gae", "monte-carlo", "duel", "indirect"]


@dataclass(frozen=True)
class SyntheticConfig:
    """Train actor-critics on a chain of states, and compare their advantages with the true ones.

    Run the same command again to continue one that was stopped, or with more seeds or methods to add to it.

        dae synthetic
        dae synthetic --seeds 100 --methods dae gae monte-carlo
    """

    seeds: int = ruled(10, COUNT)
    """Independent repetitions, with seeds 0, 1, …; the paper has 100."""
    methods: Annotated[tuple[Method, ...], tyro.conf.arg(metavar=f"{choice(get_args(Method))} ...")] = ruled(
        ("dae", "gae"), METHODS
    )
    """How advantages are estimated: the paper's dae and gae; monte-carlo is DAE without values (Theorem 1)."""
    states: int = ruled(128, COUNT)
    """Length of the chain."""
    swap_rewards: bool = True
    """Draw for every state and seed which of the two actions earns the reward; if not, it is always the first."""
    gamma: float = ruled(0.99, FRACTION)
    """Discount factor."""
    gae_lambda: float = ruled(0.95, FRACTION)
    """GAE's λ."""
    iterations: int = ruled(1000, COUNT)
    """Updates of the policy."""
    trajectories: int = ruled(4, COUNT)
    """Walks along the chain between two updates."""
    critic_steps: int = ruled(4, COUNT)
    """Gradient steps of the critic per iteration, each on all walks of the iteration."""
    policy_steps: int = ruled(1, COUNT)
    """Gradient steps of the policy per iteration."""
    critic_learning_rate: float = ruled(0.001, POSITIVE)
    """Adam's step size for the critic."""
    policy_learning_rate: float = ruled(0.01, POSITIVE)
    """Adam's step size for the policy."""
    adam_eps: float = ruled(1e-3, POSITIVE)
    """Adam's ε."""
    policy_loss: Literal["mean", "sum"] = "mean"
    """What the policy's loss is over the steps of an iteration; Adam's large ε makes late steps of a mean vanish."""
    hidden: int = ruled(256, COUNT)
    """Width of the critic's two hidden layers."""
    device: str = ruled("auto", DEVICE)
    """Device to compute on: auto, cpu, cuda."""
    threads: int = ruled(0, NOT_NEGATIVE)
    """Groups of seeds that train at the same time, one CPU core each; 0 for all cores."""
    out: Path = field(default_factory=lambda: Path("synthetic"))
    """Folder for data, figures and summary."""

    def to_json(self) -> dict[str, Any]:
        """Return the settings that decide the numbers of a seed."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in _NOT_PART_OF_A_SEED}


_NOT_PART_OF_A_SEED = ("seeds", "methods", "device", "threads", "out")
