"""The figures of a report. A panel is drawn by one function, for the page and for the files alike."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dae.catalog import colour_of
from dae.pictures import count_axis, draw_band, legend_below, look_of, new_figure, plain, score_axis
from dae.report.cells import Cell, Cells
from dae.report.comparing import Comparison
from dae.report.normalising import Group, Normalised, stacked
from dae.report.reading import AXIS_LABELS
from dae.report.statistics import Numbers, mean_and_error, performance_profile
from dae.report.text import domain_name, method_name
from dae.runs import BINS
from dae.runs.episodes import fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {"baseline": "-", "wide": (0, (5, 1.6)), "deep": (0, (1.2, 1.2))}
PANEL = (3.5, 2.5)  # inches: what a phone shows at a readable size
_WIDE = 4.1
_ROW = 5  # panels side by side in a file
_REFERENCE: dict[str, Any] = {"color": "#808080", "lw": 1.3, "ls": (0, (1, 1.3))}  # dotted, to be seen on grid lines


def curve_panel(cells: Cells, title: str) -> "Figure":
    """Draw the learning curves of one environment with one network."""
    figure, (axes,) = new_figure(*PANEL)
    _draw_curves(axes, list(cells), title)
    axes.set_ylabel("score", fontsize=8)
    return figure


def curve_grid(panels: list[tuple[str, Cells]], title: str) -> "Figure":
    """Draw the learning curves of all environments with one network side by side, as the paper does."""
    columns = min(_ROW, len(panels))
    rows = -(-len(panels) // columns)
    figure, places = new_figure(max(4.0, 3.0 * columns), 2.4 * rows + 0.6, rows=rows, columns=columns)
    for axes, (name, cells) in zip(places, panels, strict=False):
        _draw_curves(axes, list(cells), name)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    for axes in places[::columns]:
        axes.set_ylabel("score", fontsize=8)
    handles = {label: line for axes in places for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.suptitle(plain(title), fontsize=10, x=0.01, ha="left")
    return figure


def _draw_curves(axes: "Axes", cells: list[Cell], title: str) -> None:
    for cell in cells:
        mean, error, seen = mean_curve(stacked(cell))
        draw_band(axes, _middles(cell.frames)[seen], mean[seen], error[seen], **look_of(cell.key.method))
    axes.set_title(plain(title), fontsize=10)
    score_axis(axes, "")
    count_axis(axes, max(cell.frames for cell in cells), AXIS_LABELS[cells[0].axis])


def mean_curve(curves: Numbers) -> tuple[Numbers, Numbers, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Return mean and standard error over seeds by bin, and the bins to be drawn.

    A seed without an episode in a bin has the value of the bin before it. A bin in which no episode ended is not drawn,
    nor one before every seed has had an episode.
    """
    filled, complete_from = fill(curves)
    scores = [mean_and_error(column) for column in filled.T]
    seen = (np.arange(BINS) >= complete_from) & ~np.isnan(curves).all(0)
    return np.array([s.mean for s in scores]), np.array([s.error for s in scores]), seen


def normalised_panel(normalised: Normalised) -> "Figure":
    """Draw the mean of the normalised curves over environments and seeds."""
    figure, (axes,) = new_figure(_WIDE, 3.2)
    for group in normalised.groups:
        _draw_group(axes, group)
    axes.axhline(1, **_REFERENCE)
    axes.set_title(f"{domain_name(normalised.domain)}, mean over environments", fontsize=10)
    axes.set_ylabel(f"{method_name(normalised.reference)}-normalised score", fontsize=8)
    count_axis(axes, max(group.frames for group in normalised.groups), AXIS_LABELS[normalised.axis])
    legend_below(figure, axes)
    return figure


def _draw_group(axes: "Axes", group: Group) -> None:
    scores = [mean_and_error(column) for column in group.curves.T]
    mean, error = np.array([s.mean for s in scores]), np.array([s.error for s in scores])
    x, known = _middles(group.frames), np.arange(BINS) >= group.complete_from
    style = STYLES.get(group.network, "-")
    draw_band(
        axes,
        x[known],
        mean[known],
        error[known],
        colour=colour_of(group.method).light,
        label=plain(group.label),
        ls=style,
    )
    if group.complete_from:  # some environment has no score of its own yet
        early = np.arange(BINS) <= group.complete_from
        axes.plot(x[early], mean[early], color=colour_of(group.method).light, lw=0.8, alpha=0.55, ls=(0, (1, 2)))


def profile_panel(normalised: Normalised) -> "Figure":
    """Draw the fraction of runs with a normalised final score above each threshold."""
    figure, (axes,) = new_figure(_WIDE, 3.2)
    highest = max(float(np.quantile(group.last, 0.98)) for group in normalised.groups)
    thresholds = np.linspace(0, max(1.2, highest * 1.05), 161)
    for group in normalised.groups:
        value, low, high = performance_profile(group.last, thresholds)
        hue = colour_of(group.method).light
        axes.fill_between(thresholds, np.nan_to_num(low), np.nan_to_num(high), color=hue, alpha=0.15, lw=0, step="post")
        style = STYLES.get(group.network, "-")
        axes.step(thresholds, value, color=hue, lw=1.6, ls=style, label=plain(group.label), where="post")
    axes.set_title(f"{domain_name(normalised.domain)}, performance profile", fontsize=10)
    axes.set_xlabel(f"{method_name(normalised.reference)}-normalised final score τ", fontsize=8)
    axes.set_ylabel("runs above τ", fontsize=8)
    axes.set_xlim(0, thresholds[-1])
    axes.set_ylim(-0.02, 1.04)
    axes.tick_params(labelsize=8)
    legend_below(figure, axes)
    return figure


def iqm_panel(normalised: Normalised) -> "Figure":
    """Draw the interquartile means with their intervals."""
    groups = normalised.groups[::-1]
    figure, (axes,) = new_figure(_WIDE, 1.05 + 0.27 * len(groups))
    for place, group in enumerate(groups):
        _draw_interval(axes, place, group.iqm.value, group.iqm.low, group.iqm.high, colour_of(group.method).light)
    axes.axvline(1, **_REFERENCE)
    _name_rows(axes, [group.label for group in groups])
    axes.set_xlabel(f"{method_name(normalised.reference)}-normalised final score", fontsize=8)
    figure.suptitle(f"{domain_name(normalised.domain)}, interquartile mean", fontsize=10)
    return figure


def improvement_panel(compared: list[Comparison], domain: str) -> "Figure":
    """Draw the probabilities of improvement with their intervals."""
    inside = [c for c in compared if c.domain == domain][::-1]
    figure, (axes,) = new_figure(_WIDE, 1.05 + 0.27 * len(inside))
    for place, comparison in enumerate(inside):
        estimate = comparison.improvement("last")
        _draw_interval(axes, place, estimate.value, estimate.low, estimate.high, colour_of(comparison.second).light)
    axes.axvline(0.5, **_REFERENCE)
    axes.set_xlim(-0.02, 1.02)
    _name_rows(axes, [comparison.name for comparison in inside])
    axes.set_xlabel("probability that a run of the first is better", fontsize=8)
    figure.suptitle(f"{domain_name(domain)}, probability of improvement", fontsize=10)
    return figure


def _draw_interval(axes: "Axes", place: int, value: float, low: float, high: float, hue: str) -> None:
    axes.plot([low, high], [place, place], color=hue, lw=5, alpha=0.35, solid_capstyle="butt")
    axes.plot([value], [place], "o", color=hue, ms=5)


def _name_rows(axes: "Axes", names: list[str]) -> None:
    axes.set_yticks(range(len(names)), map(plain, names), fontsize=8)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(labelsize=8)


def _middles(frames: int) -> Numbers:
    middles: Numbers = (np.arange(BINS) + 0.5) * frames / BINS
    return middles
