"""What the paper printed: scores, wins, budgets and settings; and how its environments are called here."""

import csv
import functools
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Protocol:
    """How much the paper ran in a domain."""

    frames: int
    seeds: int
    environments: int


PROTOCOLS = {"minatar": Protocol(10_000_000, 50, 5), "atari": Protocol(40_000_000, 10, 49)}

# The paper's settings that a run may depart from, for all estimators and for each of them.
SETTINGS: dict[str, Any] = {
    "actors": 1024,
    "steps": 128,
    "batch_size": 256,
    "learning_rate": 2.5e-4,
    "clip_range": 0.1,
    "anneal": True,
    "gamma": 0.99,
    "ent_coef": 0.01,
    "normalize": True,
    "kl_coef": None,
    "separate_networks": False,
    "finishing": True,
}
_DAE: dict[str, Any] = {"epochs": 6, "critic_coef": 1.5, "max_grad_norm": None}
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "gae": {"epochs": 4, "critic_coef": 0.5, "max_grad_norm": 0.5, "gae_lambda": 0.95},
    "dae": _DAE,
    "duel": _DAE,
    "indirect": _DAE,
}

# The printed table of wins: environments won by GAE, won by DAE, similar. It does not follow exactly from the printed
# scores, so both are shown.
WINS: dict[tuple[str, str, str], tuple[int, int, int]] = {
    ("minatar", "baseline", "overall"): (0, 5, 0),
    ("minatar", "baseline", "last"): (0, 5, 0),
    ("minatar", "wide", "overall"): (0, 5, 0),
    ("minatar", "wide", "last"): (0, 5, 0),
    ("atari", "baseline", "overall"): (10, 32, 7),
    ("atari", "baseline", "last"): (11, 30, 8),
    ("atari", "wide", "overall"): (8, 35, 6),
    ("atari", "wide", "last"): (9, 34, 6),
    ("atari", "deep", "overall"): (6, 35, 8),
    ("atari", "deep", "last"): (8, 32, 9),
}


@dataclass(frozen=True)
class Score:
    """A mean over seeds and its standard error (NaN where a single seed gives none)."""

    mean: float
    error: float


@functools.cache
def paper_scores() -> dict[tuple[str, str, str, str, str], Score]:
    """Return the printed scores by (domain, network, environment, metric, method)."""
    text = resources.files("dae.report").joinpath("paper_scores.csv").read_text()
    return {
        (row["domain"], row["network"], row["environment"], row["metric"], row["method"]): Score(
            float(row["mean"]), float(row["standard_error"])
        )
        for row in csv.DictReader(text.splitlines())
    }


def paper_environments(domain: str) -> list[str]:
    """Return the names of the paper's environments in a domain."""
    return sorted({environment for d, _, environment, _, _ in paper_scores() if d == domain})


def domain_of(env: str) -> str:
    return {"MinAtar": "minatar", "ALE": "atari"}.get(env.split("/")[0], "other")


def paper_name(env: str) -> str | None:
    """Return what the paper calls an environment, None if it is not there.

    >>> paper_name("MinAtar/SpaceInvaders-v1"), paper_name("ALE/Pong-v5"), paper_name("CartPole-v1")
    ('SpaceInvaders', 'Pong', None)
    """
    found = re.fullmatch(r"MinAtar/(\w+)-v1|ALE/(\w+)-v5", env)
    name = found and (found.group(1) or found.group(2))
    return name if name and name in paper_environments(domain_of(env)) else None
