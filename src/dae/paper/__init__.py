"""What the paper printed: its scores and its table of wins."""

import csv
import functools
from dataclasses import dataclass
from importlib import resources

# The comparison that the paper is about: the estimator to beat, whose scores are also the scale, and its own.
PAIR = ("gae", "dae")
REFERENCE = PAIR[0]
# The printed table of wins: environments won by GAE, won by DAE, similar. It does not follow exactly from the printed
# scores, so reports show both.
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
# The ablation: these estimators, normalised by the scores of one of them.
ABLATION, ABLATION_REFERENCE = ("dae", "duel", "indirect"), "indirect"


@dataclass(frozen=True)
class Score:
    """A mean over seeds and its standard error (NaN where a single seed gives none)."""

    mean: float
    error: float


@functools.cache
def paper_scores() -> dict[tuple[str, str, str, str, str], Score]:
    """Return the printed scores by (family, network, game, metric, estimator)."""
    text = resources.files("dae.paper").joinpath("scores.csv").read_text(encoding="utf-8")
    return {
        (row["domain"], row["network"], row["environment"], row["metric"], row["method"]): Score(
            float(row["mean"]), float(row["standard_error"])
        )
        for row in csv.DictReader(text.splitlines())
    }


@functools.cache
def paper_games(family: str) -> tuple[str, ...]:
    """Return the games of the paper's tables, by name.

    >>> paper_games("minatar")
    ('Asterix', 'Breakout', 'Freeway', 'Seaquest', 'SpaceInvaders')
    """
    return tuple(sorted({game for of, _, game, _, _ in paper_scores() if of == family}))
