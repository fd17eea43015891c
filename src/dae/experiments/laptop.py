"""What `dae sweep laptop` shows: how long it takes until an agent plays well, by preset, beside Stable-Baselines3."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.catalog import colour_of
from dae.envs import family_of
from dae.files import write_atomically
from dae.pictures import dots_if_few, new_figure, save_figure, score_axis
from dae.runs import Digest, RunFolder, RunSettings
from dae.runs.evaluations import standard_error
from dae.text import decimals_for, plural, short_number, with_error

QUICK, GAE, PAPER, THEIRS = "quick, DAE", "quick, GAE", "paper, DAE", "Stable-Baselines3"
_LINES: dict[str, dict[str, Any]] = {
    QUICK: {"color": colour_of("dae").light, "lw": 1.8},
    GAE: {"color": colour_of("gae").light, "lw": 1.4},
    PAPER: {"color": colour_of("dae").light, "lw": 1.2, "ls": ":"},
    THEIRS: {"color": "#333333", "lw": 1.4, "ls": "--"},
}
TARGETS = (0.5, 0.9)  # shares of what `quick` gains
_FEWEST_PARTS = 5  # hundredths of the frames in which episodes end

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Mean scores of a run's episodes, by hundredths of its frames, and the minutes that had passed by then."""

    minutes: Floats
    scores: Floats
    last: float  # mean score of the final 100 episodes

    @staticmethod
    def of(digest: Digest) -> "Curve":
        scores = digest.curve("frames")
        known = ~np.isnan(scores)
        return Curve(np.array(digest.seconds, float)[known] / 60, scores[known], digest.last)

    def minutes_to(self, score: float) -> float:
        """Return when the mean of a hundredth was as high for the first time, infinity if never."""
        reached = np.flatnonzero(self.scores >= score)
        return float(self.minutes[reached[0]]) if len(reached) else float("inf")


Curves = dict[str, dict[str, list[Curve]]]  # by game, then by method


def method_of(settings: RunSettings) -> str:
    """Return which of the compared methods a run belongs to."""
    if settings.implementation == "sb3":
        return THEIRS
    if settings.preset == "paper":
        return PAPER
    return GAE if settings.advantage == "gae" else QUICK


def read_curves(folders: Iterable[RunFolder]) -> Curves:
    """Read the runs of a sweep; those without an episode are not in it."""
    found: Curves = {}
    for folder in folders:
        settings = folder.read_config().settings
        digest = folder.read_digest(settings)
        methods = found.setdefault(settings.env, {})
        if digest is not None:
            methods.setdefault(method_of(settings), []).append(Curve.of(digest))
    return dict(sorted(found.items()))


def targets(curves: dict[str, list[Curve]]) -> list[float]:
    """Return the scores to be reached in a game: shares of what `quick` gains, in the mean over its seeds.

    There are none where it gains less than it began with, or where too few episodes end to tell when.
    """
    start, end = (float(np.mean([curve.scores[place] for curve in curves[QUICK]])) for place in (0, -1))
    if end - start <= abs(start) or min(len(curve.scores) for curve in curves[QUICK]) < _FEWEST_PARTS:
        return []
    return [start + share * (end - start) for share in TARGETS]


def summarise(out: Path, folders: Iterable[RunFolder]) -> str:
    """Write table and figure of a finished sweep beside its runs; return what they show."""
    curves = {env: methods for env, methods in read_curves(folders).items() if QUICK in methods}
    if not curves:
        return "no episode has ended in runs of the preset quick: nothing is compared"
    table = describe(curves)
    write_atomically(out / "laptop.md", table.encode())
    draw(curves, out / "laptop.png", out / "laptop.svg")
    return f"{table}\n{out / 'laptop.md'}, {out / 'laptop.png'}"


def describe(curves: Curves) -> str:
    """Return the minutes to each score, and the scores at the end."""
    names = [name for name in _LINES if any(name in methods for methods in curves.values())]
    lines = _header("Game", "score", *names)
    nothing = []
    for env, methods in curves.items():
        scores = targets(methods)
        nothing += [] if scores else [_game(env)]
        for target in scores:
            cells = [_minutes(methods.get(name, []), target) for name in names]
            lines.append(f"| {_game(env)} | {short_number(round(target, 1))} | " + " | ".join(cells) + " |")
    shares = " and ".join(f"{share:.0%}" for share in TARGETS)
    lines += [
        "",
        "Minutes until the mean score of the episodes in a hundredth of the frames was as high, ± standard error over "
        f"seeds; runs at the same time share the cores, one thread each. The scores are {shares} of the way from the "
        "first to the last hundredth with episodes of the preset quick (DAE).",
    ]
    if nothing:
        lines.append(
            f"Without a score to reach, because quick learns too little or too few episodes end: {', '.join(nothing)}."
        )
    lines += ["", *_header("Game", *names)]
    for env, methods in curves.items():
        lines.append(f"| {_game(env)} | " + " | ".join(_end(methods.get(name, [])) for name in names) + " |")
    lines += [
        "",
        "Mean score of the final 100 episodes, ± standard error over seeds, and the minutes until the last one ended.",
    ]
    return "\n".join([*lines, ""])


def _header(*columns: str) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def _minutes(curves: list[Curve], target: float) -> str:
    if not curves:
        return ""
    minutes = np.array([curve.minutes_to(target) for curve in curves])
    if np.isfinite(minutes).all():
        return _mean_text(minutes)
    longest = max(curve.minutes[-1] for curve in curves)
    missed = int((~np.isfinite(minutes)).sum())
    who = "" if missed == len(curves) else f"{missed} of {plural(len(curves), 'seed')} "
    return f"{who}not within {longest:.0f}"


def _end(curves: list[Curve]) -> str:
    if not curves:
        return ""
    scores, minutes = np.array([curve.last for curve in curves]), np.mean([curve.minutes[-1] for curve in curves])
    return f"{_mean_text(scores)} ({minutes:.1f})"


def _mean_text(values: Floats) -> str:
    """Write the mean over seeds, with as many decimals as its standard error needs."""
    error = standard_error(values)
    return with_error(float(values.mean()), error, decimals_for([error], least=1))


def _game(env: str) -> str:
    return family_of(env).paper_name(env) or env


def draw(curves: Curves, *paths: Path) -> None:
    """Draw scores against minutes, one panel for each game, a thin line for each run."""
    figure, panels = new_figure(3.0 * len(curves), 3.0, columns=len(curves))
    for place, (axes, (env, methods)) in enumerate(zip(panels, curves.items(), strict=True)):
        for name, line in _LINES.items():
            for number, curve in enumerate(methods.get(name, [])):
                look = line | dots_if_few(curve.minutes)
                axes.plot(curve.minutes, curve.scores, label=name if not number else None, **look)
        end = 1.5 * max(curve.minutes[-1] for curve in methods[QUICK])
        axes.set_xlim(0, end)
        shown = np.concatenate([c.scores[c.minutes <= end] for runs in methods.values() for c in runs])
        axes.set_ylim(min(0, 1.08 * shown.min()), max(0, 1.08 * shown.max()))
        axes.set_title(_game(env), fontsize=10)
        axes.set_xlabel("minutes", fontsize=8)
        score_axis(axes, "" if place else "score")
    handles = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, *paths)
