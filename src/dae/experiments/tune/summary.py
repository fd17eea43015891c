"""What a search has found: a table, a file of settings for `dae train`, and a figure."""

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dae.catalog import colour_of
from dae.envs import trust_option
from dae.experiments.tune.config import TuneConfig
from dae.experiments.tune.space import Choice
from dae.files import write_atomically
from dae.pictures import new_figure, save_figure
from dae.terminal.boundary import announce
from dae.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from optuna import Study
    from optuna.trial import FrozenTrial

_SHOWN = 5


def show_values(values: Mapping[str, Any]) -> str:
    """Return values as they would be typed: learning_rate=0.00031 epochs=4."""
    return " ".join(f"{name}={_typed(value)}" for name, value in values.items())


def summarise(config: TuneConfig, study: "Study") -> str:
    """Write what was found beside the study, and return what to print."""
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    finished = sorted((t for t in trials if t.state is TrialState.COMPLETE), key=_score, reverse=True)
    given_up = sum(trial.state is TrialState.PRUNED for trial in trials)
    head = f"{plural(len(trials), 'trial')}: {len(finished)} finished, {given_up} given up, "
    head += f"{len(trials) - len(finished) - given_up} failed"
    if not finished:
        return f"{head}; nothing was found"
    best = config.folder / "best.toml"
    write_atomically(best, _as_toml(config, finished[0]).encode())
    figure = config.folder / "search.png"
    _draw(config, finished, [t for t in trials if t.state is TrialState.PRUNED and t.value is not None])
    lines = [head, "", f"{'trial':>5}  {'score':>9}  values"]
    lines += [f"{t.number:>5}  {_score(t):>9.4g}  {show_values(t.params)}" for t in finished[:_SHOWN]]
    if config.seeds == 1 and len(finished) > 1:
        announce("one seed for each trial: the best score is partly luck; train it with other seeds")
    if len(finished) > _SHOWN:
        lines.append(f"the best {_SHOWN} of {len(finished)} that finished")
    # With a seed that the search has not seen.
    following = f"next: dae train --config {best} --seed {config.seed + config.seeds}{trust_option(config.env)}"
    return "\n".join([*lines, "", f"the search      {figure}", following])


def _score(trial: "FrozenTrial") -> float:
    return -np.inf if trial.value is None else float(trial.value)


def _as_toml(config: TuneConfig, trial: "FrozenTrial") -> str:
    """Return the settings of the best runs as a file for `dae train --config`."""
    settings: dict[str, Any] = {"env": config.env}
    settings |= {name: getattr(config, name) for name in ("advantage", "network", "preset")}
    settings |= config.fixed | trial.params
    lines = [f"{name} = {_toml_value(value)}" for name, value in settings.items()]
    head = f"# Trial {trial.number} of {config.folder}: {config.objective} score {_score(trial):.6g}"
    return "\n".join([head, *lines, ""])


def _toml_value(value: Any) -> str:
    """Write a value, which may be the text of a number, as TOML has it."""
    for kind in (int, float) if isinstance(value, str) else ():
        with contextlib.suppress(ValueError):
            return json.dumps(kind(value), allow_nan=False)
    return json.dumps(value)


def _typed(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _draw(config: TuneConfig, finished: "list[FrozenTrial]", given_up: "list[FrozenTrial]") -> None:
    """Draw the score of trials against each setting, and how the best score rose."""
    space = config.parsed_space
    columns = min(4, len(space) + 1)
    rows = -(-(len(space) + 1) // columns)
    figure, panels = new_figure(3.2 * columns, 2.7 * rows, rows=rows, columns=columns)
    colour = colour_of(config.advantage).light
    in_order = sorted(finished, key=lambda trial: trial.number)
    panels[0].scatter([t.number for t in in_order], [_score(t) for t in in_order], s=14, color=colour, label="finished")
    panels[0].step(
        [t.number for t in in_order],
        np.maximum.accumulate([_score(t) for t in in_order]),
        where="post",
        color=colour,
        lw=1.2,
        label="best so far",
    )
    panels[0].set_xlabel("trial")
    panels[0].set_title(f"{config.env}, {plural(len(finished) + len(given_up), 'trial')}", fontsize=9)
    for axes, (name, values) in zip(panels[1:], space.items(), strict=False):
        _draw_setting(axes, name, values, finished, given_up, colour)
    for axes in panels[::columns]:
        axes.set_ylabel(f"{config.objective} score")
    for axes in panels[len(space) + 1 :]:
        axes.set_visible(False)
    figure.legend(*_legend(panels[:2]), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, config.folder / "search.png")


def _draw_setting(
    axes: "Axes", name: str, values: Any, finished: "list[FrozenTrial]", given_up: "list[FrozenTrial]", colour: str
) -> None:
    place: Any = lambda trial: trial.params[name]  # noqa: E731
    if isinstance(values, Choice):
        place = lambda trial: values.values.index(str(trial.params[name]))  # noqa: E731
        axes.set_xticks(range(len(values.values)), values.values, fontsize=8)
    elif values.log:
        axes.set_xscale("log")
    axes.scatter([place(t) for t in finished], [_score(t) for t in finished], s=14, color=colour)
    axes.scatter(
        [place(t) for t in given_up], [_score(t) for t in given_up], s=14, marker="x", color="#999999", label="given up"
    )
    best = max(finished, key=_score)
    axes.scatter([place(best)], [_score(best)], s=60, facecolors="none", edgecolors="black", label="best")
    axes.set_xlabel(name)


def _legend(panels: "list[Axes]") -> tuple[list[Any], list[str]]:
    handles: list[Any] = []
    labels: list[str] = []
    for axes in panels:
        of_panel = axes.get_legend_handles_labels()
        handles += of_panel[0]
        labels += of_panel[1]
    return handles, labels
