"""The paper's figure: median and inter-quartile range of the changes of A and Q, here with what noise alone gives."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dae.experiments.variation.summary import Result
from dae.pictures import dots_if_few, draw_between, legend_below, new_figure, plain, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {"A": ("#0072b2", "advantages A"), "Q": ("#d55e00", "action values Q")}
_COLUMNS = 3  # as in the paper


def draw(results: Sequence[Result], *paths: Path) -> None:
    """Draw a panel for each game."""
    columns = min(_COLUMNS, len(results))
    rows = -(-len(results) // columns)
    size = (6.4, 4.2) if len(results) == 1 else (3.6 * columns, 2.6 * rows + 0.5)
    figure, panels = new_figure(*size, rows=rows, columns=columns)
    for result, axes in zip(results, panels, strict=False):
        _draw_panel(axes, result)
    for spare in panels[len(results) :]:
        spare.remove()
    for axes in panels[: len(results)][::columns]:
        axes.set_ylabel("|change from the policy before|", fontsize=9)
    legend_below(figure, panels[0], columns=2, fontsize=9)
    save_figure(figure, *paths)


def _draw_panel(axes: "Axes", result: Result) -> None:
    from matplotlib.ticker import MaxNLocator

    iterations = np.arange(1, result.iterations)
    dots = dots_if_few(iterations)
    for name, changes in result.changes.items():
        colour, label = _LOOKS[name]
        lower, upper = changes.quantile(0.25), changes.quantile(0.75)
        draw_between(axes, iterations, changes.median, lower, upper, colour=colour, label=label)
    for name, changes in result.changes.items():
        colour, label = _LOOKS[name]
        axes.plot(iterations, changes.noise, color=colour, lw=0.9, ls="--", label=f"{label[-1]}: noise alone", **dots)
    axes.set_title(plain(result.name), fontsize=10)
    axes.set_xlim(0, result.iterations - 1)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("iteration", fontsize=9)
    axes.tick_params(labelsize=8)
