"""Comparing estimators: which environments each wins, by the paper's rule, and what to know about the comparison."""

import math
from collections import defaultdict
from dataclasses import dataclass

from dae.catalog import describe, set_by_the_paper
from dae.hyperparameters import as_settings
from dae.paper import PAIR, Score, paper_games, paper_scores
from dae.report.cells import Cell, Cells, differences
from dae.report.statistics import Estimate, probability_of_improvement
from dae.report.text import listed, method_name, plural
from dae.text import count_text


@dataclass(frozen=True)
class Wins:
    """How many environments each of two won; those with a single seed on either side cannot be judged."""

    first: int = 0
    second: int = 0
    similar: int = 0
    undecided: int = 0

    @property
    def environments(self) -> int:
        return self.first + self.second + self.similar + self.undecided


def count_wins(pairs: list[tuple[Score, Score]]) -> Wins:
    """Count by the paper's rule: similar if the intervals of ± 1 standard error overlap, even in a single point."""
    judged = [_judge(first, second) for first, second in pairs]
    return Wins(**{outcome: judged.count(outcome) for outcome in ("first", "second", "similar", "undecided")})


def _judge(first: Score, second: Score) -> str:
    reach = first.error + second.error
    if math.isnan(reach):
        return "undecided"
    if abs(first.mean - second.mean) <= reach + 1e-9:  # printed decimals must not decide whether intervals touch
        return "similar"
    return "first" if first.mean > second.mean else "second"


def paper_recount(domain: str, network: str, metric: str) -> Wins:
    """Count the wins of DAE over GAE in the paper's printed scores by the same rule."""
    scores = paper_scores()
    keys = [(domain, network, env, metric) for env in paper_games(domain)]
    first, second = PAIR
    return count_wins([(scores[*key, first], scores[*key, second]) for key in keys if (*key, first) in scores])


@dataclass(frozen=True)
class Comparison:
    """Two estimators with the same network on the environments of a domain that both were run on."""

    domain: str
    network: str
    first: str
    second: str
    cells: list[tuple[Cell, Cell]]

    def wins(self, metric: str) -> Wins:
        return count_wins([(a.ours[metric], b.ours[metric]) for a, b in self.cells])

    def improvement(self, metric: str) -> Estimate:
        """Return the probability that a run of the second beats one of the first."""
        return probability_of_improvement(
            [b.scores(metric) for _, b in self.cells], [a.scores(metric) for a, _ in self.cells]
        )

    @property
    def name(self) -> str:
        return f"{method_name(self.second)} over {method_name(self.first)}, {self.network}"

    @property
    def notes(self) -> list[str]:
        """Say where the two differ in more than the estimator."""
        found = defaultdict(list)
        own = {*as_settings(dict.fromkeys(set_by_the_paper())), "frames"}
        own |= {*describe(self.first).ignores, *describe(self.second).ignores}
        for a, b in self.cells:
            told = []
            if len(a.runs) != len(b.runs):
                told.append(f"{plural(len(a.runs), 'seed')} against {len(b.runs)}")
            if a.frames != b.frames:
                told.append(f"{count_text(a.frames)} frames against {count_text(b.frames)}")
            told += differences(a.settings, b.settings, but=own)
            if told:
                found["; ".join(told)].append(a.key.env)
        who = f"{method_name(self.first)} and {method_name(self.second)} ({self.network})"
        return [f"{who} were not run alike on {listed(envs)}: {how}." for how, envs in found.items()]


def comparisons(cells: Cells) -> list[Comparison]:
    """Return what estimators declare to be compared with, where the cells allow it; the first is the one to beat."""
    pairs = [(first, second) for second in cells.values("method") for first in describe(second).compared_with]
    found = []
    for first, second in pairs:
        for domain in cells.values("domain"):
            for network in cells.values("network"):
                both = []
                for env in cells.where(domain=domain, network=network).values("env"):
                    a, b = cells.get(domain, env, network, first), cells.get(domain, env, network, second)
                    if a and b:
                        both.append((a, b))
                if both:
                    found.append(Comparison(domain, network, first, second, both))
    return found
