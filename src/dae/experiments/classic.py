"""What `dae sweep classic` shows: the defaults of `dae.PPO` beside Stable-Baselines3's own PPO, on small problems."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.catalog import colour_of
from dae.files import write_atomically
from dae.pictures import count_axis, draw_band, new_figure, save_figure, score_axis
from dae.runs import Episodes, RunFolder, RunSettings
from dae.runs.episodes import fill
from dae.runs.evaluations import standard_error
from dae.text import count_text, decimals_for, plural, with_error

BINS = 20  # of a curve; an area is their mean, a final return the mean of the last tenth of the frames
OURS, THEIRS = "default", "sb3"
LABELS = {OURS: "dae.PPO (default)", "uncorrected": "DAE, c = 0", "gae": "dae.PPO, GAE", THEIRS: "Stable-Baselines3"}
_LINES: dict[str, dict[str, Any]] = {
    OURS: {"colour": colour_of("dae").light, "lw": 2.0},
    "uncorrected": {"colour": colour_of("dae").light, "lw": 1.2, "ls": ":"},
    "gae": {"colour": colour_of("gae").light, "lw": 1.2, "ls": "--"},
    THEIRS: {"colour": "#333333", "lw": 1.6},
}

Floats = NDArray[np.float64]
Task = tuple[str, int]  # environment, number of environments


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and its standard error."""

    value: float
    error: float

    @staticmethod
    def of(numbers: Floats) -> "Mean":
        return Mean(float(numbers.mean()), standard_error(numbers))

    def __str__(self) -> str:
        return self.rounded(decimals_for([self.error], 1 if abs(self.value) >= 10 else 2))

    def rounded(self, digits: int) -> str:
        """Return mean ± standard error; one seed has no error."""
        return "–" if np.isnan(self.value) else with_error(self.value, self.error, digits)


@dataclass(frozen=True)
class Comparison:
    """The curves of all runs: (seeds, BINS) of every method in every task."""

    curves: dict[Task, dict[str, Floats]]
    frames: dict[Task, int]
    without_episodes: list[Task] = field(default_factory=list)  # in some run, so that there is nothing to compare

    @property
    def tasks(self) -> list[Task]:
        return [task for task, methods in self.curves.items() if {OURS, THEIRS} <= set(methods)]

    def final(self, task: Task, method: str) -> Mean:
        """Return the mean return in the last tenth of the frames."""
        return Mean.of(self.curves[task][method][:, -BINS // 10 :].mean(1))

    def area(self, task: Task, method: str) -> Mean:
        """Return the mean return over the whole run: the area under the learning curve."""
        return Mean.of(self.curves[task][method].mean(1))

    def normalised_area(self, task: Task, method: str) -> Mean | None:
        """Return the area where 0 is an untrained agent and 1 the best final return; None if nobody learns."""
        methods = self.curves[task].values()
        untrained = float(np.mean([curve[:, 0].mean() for curve in methods]))
        best = max(self.final(task, name).value for name in self.curves[task])
        if best - untrained <= 1e-3 * abs(untrained):
            return None
        return Mean.of((self.curves[task][method].mean(1) - untrained) / (best - untrained))

    def mean_normalised_area(self, method: str) -> Mean:
        """Return the mean over the tasks that somebody learns."""
        areas = [self.normalised_area(task, method) for task in self.tasks if method in self.curves[task]]
        known = [area for area in areas if area is not None]
        if not known:
            return Mean(float("nan"), float("nan"))
        error = np.sqrt(sum(area.error**2 for area in known)) / len(known)
        return Mean(float(np.mean([area.value for area in known])), float(error))

    def behind(self) -> list[Task]:
        """Return the tasks in which our defaults end below Stable-Baselines3 by more than the standard error."""
        found = []
        for task in self.tasks:
            ours, theirs = self.final(task, OURS), self.final(task, THEIRS)
            if theirs.value - ours.value > np.hypot(ours.error, theirs.error):
                found.append(task)
        return found


def method_of(settings: RunSettings) -> str:
    """Return which of the compared methods a run belongs to."""
    if settings.implementation == "sb3":
        return THEIRS
    if settings.advantage != "dae":
        return settings.advantage
    return OURS if settings.correction else "uncorrected"


def compare(folders: Iterable[RunFolder]) -> Comparison:
    """Read the runs of a sweep."""
    curves: dict[Task, dict[str, list[Floats]]] = {}
    frames: dict[Task, int] = {}
    for folder in folders:
        settings = folder.read_config().settings
        task = settings.env, settings.actors
        frames[task] = settings.frames
        curve = learning_curve(folder.read_episodes(), settings.frames)
        curves.setdefault(task, {}).setdefault(method_of(settings), []).append(curve)
    stacked = {task: {name: np.array(c) for name, c in methods.items()} for task, methods in sorted(curves.items())}
    whole = {task: m for task, m in stacked.items() if not any(np.isnan(curve).any() for curve in m.values())}
    return Comparison(whole, frames, [task for task in stacked if task not in whole])


def learning_curve(episodes: Episodes, frames: int) -> Floats:
    """Return the mean return of the episodes that ended in each part of a run; one without any is as the one before."""
    return fill(episodes.mean_scores(BINS, frames))[0]


def summarise(out: Path, folders: Iterable[RunFolder]) -> str:
    """Write table and figure of a finished sweep beside its runs; return what they show."""
    comparison = compare(folders)
    if not comparison.tasks:
        return "there is no task that both methods have finished episodes in: nothing is compared"
    table = describe(comparison)
    write_atomically(out / "classic.md", table.encode())
    draw(comparison, out / "classic.png", out / "classic.svg")
    return f"{table}\n{out / 'classic.md'}, {out / 'classic.png'}"


def describe(comparison: Comparison) -> str:
    """Return the table and the two questions that it answers."""
    names = [name for name in LABELS if any(name in comparison.curves[task] for task in comparison.tasks)]
    head = "| Task, environments, frames | " + " | ".join(LABELS[name] for name in names) + " |"
    lines = ["Return in the last tenth of the frames:", "", head, "|---" * (len(names) + 1) + "|"]
    lines += [
        _row(comparison, task, [str(comparison.final(task, name)) for name in names]) for task in comparison.tasks
    ]
    lines += ["", "Area under the learning curve (mean return of the run), and normalised:", "", head]
    lines.append("|---" * (len(names) + 1) + "|")
    for task in comparison.tasks:
        cells = []
        for name in names:
            share = comparison.normalised_area(task, name)
            cells.append(f"{comparison.area(task, name)}" + ("" if share is None else f" ({share.value:.2f})"))
        lines.append(_row(comparison, task, cells))
    means = [comparison.mean_normalised_area(name) for name in names]
    lines.append("| **mean, normalised** | " + " | ".join(mean.rounded(3) for mean in means) + " |")
    return "\n".join([*lines, "", _verdict(comparison), ""])


def _verdict(comparison: Comparison) -> str:
    seeds = sorted({len(curve) for task in comparison.tasks for curve in comparison.curves[task].values()})
    if seeds[0] == 1:
        return "One seed: too few to say which differences are real."
    behind = _named(comparison.behind()) or "no task"
    left_out = f" Left out, because no episode ended: {_named(comparison.without_episodes)}."
    return (
        f"Mean ± standard error over {' or '.join(map(str, seeds))} seeds. Below Stable-Baselines3 at the end by more "
        f"than the standard error of the difference: {behind}.{left_out if comparison.without_episodes else ''}"
    )


def _named(tasks: list[Task]) -> str:
    return ", ".join(f"{env} ({n})" for env, n in tasks)


def _row(comparison: Comparison, task: Task, cells: list[str]) -> str:
    return f"| {task[0]}, {task[1]}, {count_text(comparison.frames[task])} | " + " | ".join(cells) + " |"


def draw(comparison: Comparison, *paths: Path) -> None:
    """Draw the learning curves, one panel for each task."""
    columns = 4
    rows = -(-len(comparison.tasks) // columns)
    figure, panels = new_figure(3.1 * columns, 2.4 * rows, rows=rows, columns=columns)
    for place, (axes, task) in enumerate(zip(panels, comparison.tasks, strict=False)):
        x = (np.arange(BINS) + 0.5) / BINS * comparison.frames[task]
        for name, line in _LINES.items():
            if name in comparison.curves[task]:
                curve = comparison.curves[task][name]
                error = curve.std(0, ddof=1) / np.sqrt(len(curve)) if len(curve) > 1 else np.zeros(BINS)
                draw_band(axes, x, curve.mean(0), error, label=LABELS[name], **line)
        axes.set_title(f"{task[0]}, {plural(task[1], 'env')}", fontsize=9)
        lowest = place + columns >= len(comparison.tasks)
        count_axis(axes, comparison.frames[task], "frames" if lowest else "", fontsize=7)
        score_axis(axes, "" if place % columns else "return", fontsize=7)
    for axes in panels[len(comparison.tasks) :]:
        axes.set_visible(False)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    save_figure(figure, *paths)
