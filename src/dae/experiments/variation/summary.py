"""What a study found: a table of all iterations, the numbers of the whole, and both in words."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dae.experiments.variation.changes import Changes, Comparison, Resampled
from dae.experiments.variation.config import StudyPlan
from dae.files import write_atomically
from dae.text import aligned, plural, short_text

_COLUMNS = ("iteration", "f", "median", "lower_quartile", "upper_quartile", "noise_median", "rms", "rms_error")
_MOSTLY = 0.5  # a median is mostly noise if noise alone would still make it more than half as large


@dataclass(frozen=True)
class Result:
    """The changes of A and Q in a game, and facts about the rollouts that they were measured with."""

    plan: StudyPlan
    changes: Mapping[str, Changes]  # of "A" and "Q"
    share_cut: float  # of the rollouts
    mean_length: float  # of a rollout

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def iterations(self) -> int:
        return self.plan.config.iterations

    @cached_property
    def by_rms(self) -> Comparison:
        """A's changes against Q's by root mean square, without noise."""
        return Comparison(self.changes["A"].overall_rms(), self.changes["Q"].overall_rms())

    @cached_property
    def by_median(self) -> Comparison:
        """A's changes against Q's by the paper's statistic, which noise is a part of."""
        return Comparison(self.changes["A"].overall_median(), self.changes["Q"].overall_median())

    @property
    def noise(self) -> dict[str, float]:
        """What the medians would be by Monte-Carlo error alone."""
        return {name: float(changes.noise.mean()) for name, changes in self.changes.items()}

    @property
    def verdict_of_medians(self) -> str:
        """What the paper's statistic says, and whether noise says most of it."""
        medians = {"A": self.by_median.a.value, "Q": self.by_median.q.value}
        noisy = any(noise > _MOSTLY * medians[f] for f, noise in self.noise.items())
        return f"{self.by_median.verdict}{' (mostly noise)' if noisy else ''}"


def write_table(result: Result, path: Path) -> None:
    """Write the changes from each policy to the next."""
    lines = [",".join(_COLUMNS)]
    for f, changes in result.changes.items():
        quartiles = (changes.quantile(0.25), changes.quantile(0.75))
        columns = (changes.median, *quartiles, changes.noise, changes.rms, changes.rms_error)
        for iteration, numbers in enumerate(zip(*columns, strict=True), 1):
            lines.append(",".join([str(iteration), f, *(f"{number:.6g}" for number in numbers)]))
    write_atomically(path, "\n".join([*lines, ""]).encode())


def write_summary(result: Result, path: Path) -> None:
    """Write the numbers of the whole study."""
    gamma, horizon = result.plan.training.gamma, result.plan.config.horizon
    summary = {
        "game": result.plan.env,
        "settings": result.plan.to_json(),
        "share_of_rollouts_cut": result.share_cut,
        "mean_length_of_rollouts": result.mean_length,
        "discount_at_horizon": gamma**horizon,
        "rms_without_noise": _numbers(result.by_rms),
        "median": _numbers(result.by_median)
        | {f"noise_{f}": noise for f, noise in result.noise.items()}
        | {"verdict": result.verdict_of_medians},
    }
    write_atomically(path, json.dumps(summary, indent=2).encode() + b"\n")


def _numbers(comparison: Comparison) -> dict[str, Any]:
    low, high = comparison.interval
    numbers = {
        "A": comparison.a.value,
        "A_error": comparison.a.error,
        "Q": comparison.q.value,
        "Q_error": comparison.q.error,
        "ratio": comparison.ratio,
        "ratio_low": low,
        "ratio_high": high,
    }
    finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
    return {**finite, "verdict": comparison.verdict}


def describe(result: Result) -> str:
    """Return the numbers of a game as a table, and what they say."""
    config, training = result.plan.config, result.plan.training
    actions = result.changes["A"].means.shape[-1]
    rms, median = result.by_rms, result.by_median
    rows = [
        ["", "A", "Q", "A / Q (95 %)"],
        ["RMS change, noise removed", *_row(rms)],
        ["median |change|", *_row(median)],
        ["median, noise alone", *(f"{noise:.3g}" for noise in result.noise.values()), ""],
    ]
    return "\n".join(
        [
            f"{result.name}: {plural(config.iterations, 'policy', 'policies')}, {plural(config.states, 'state')}, "
            f"{plural(actions, 'action')}, {plural(config.rollouts, 'rollout')} each",
            f"of {result.mean_length:.0f} steps on average; {result.share_cut:.1%} were cut, where γ^{config.horizon} "
            f"is {training.gamma**config.horizon:.2g}",
            "",
            aligned(rows),
            "",
            _conclusion(result),
        ]
    )


def _conclusion(result: Result) -> str:
    return f"noise removed: {result.by_rms.verdict}\nby the paper's median: {result.verdict_of_medians}"


def overview(results: Sequence[Result]) -> str:
    """Return a table with a line for each game."""
    by_rms, by_median = (
        [[measure, "A", "Q", "A / Q (95 %)", "verdict"]]
        for measure in ("RMS change, noise removed", "median |change|, with noise")
    )
    for result in results:
        rms, median = result.by_rms, result.by_median
        by_rms.append([result.name, *_row(rms), rms.verdict])
        by_median.append([result.name, *_row(median), result.verdict_of_medians])
    return f"{aligned(by_rms)}\n\n{aligned(by_median)}"


def _row(comparison: Comparison) -> list[str]:
    return [_told(comparison.a), _told(comparison.q), _ratio(comparison)]


def _told(measured: Resampled) -> str:
    return short_text(measured.value, measured.error)


def _ratio(comparison: Comparison) -> str:
    low, high = comparison.interval
    if not math.isfinite(comparison.ratio):
        return "not known"
    return f"{comparison.ratio:.2f} [{low:.2f}, {high:.2f}]"
