"""The common look of all figures. matplotlib loads when something is drawn."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dae.catalog import colour_of, describe
from dae.files import write_atomically
from dae.text import count_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width: float, height: float, *, rows: int = 1, columns: int = 1) -> "tuple[Figure, list[Axes]]":
    """Return a figure of so many inches and its panels, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    panels = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    for axes in panels:
        axes.grid(alpha=0.25, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def look_of(method: str) -> dict[str, str]:
    """Return the colour and the label that an estimator has in all figures, as `draw_band` takes them."""
    return {"colour": colour_of(method).light, "label": plain(describe(method).label)}


def plain(text: str) -> str:
    """Escape a name that comes from a file, so that it is not drawn as a formula."""
    return text.replace("$", r"\$")


def draw_band(
    axes: "Axes", x: ArrayLike, mean: ArrayLike, error: ArrayLike, *, colour: str, label: str, **line: Any
) -> None:
    """Draw a line with a band of ± error around it; where there is no error, there is no band."""
    centre, half = np.asarray(mean, float), np.nan_to_num(np.asarray(error, float))
    draw_between(axes, x, centre, centre - half, centre + half, colour=colour, label=label, **line)


def draw_between(
    axes: "Axes",
    x: ArrayLike,
    centre: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    colour: str,
    label: str,
    **line: Any,
) -> None:
    """Draw a line, and a band between two others; few points are dots with bars, also at the very edge of a panel."""
    axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
    dots = dots_if_few(x)
    if dots:  # a band around a single point has no area
        axes.vlines(x, low, high, color=colour, lw=1, clip_on=False)
        dots |= {"clip_on": False}
    axes.plot(x, centre, color=colour, label=label, **({"lw": 1.6} | dots | line))


_FEW = 10


def dots_if_few(x: ArrayLike) -> dict[str, Any]:
    """Return how the points of a line are marked: dots where there are so few that the line hides what was measured."""
    return {"marker": "o", "ms": 3} if np.size(x) < _FEW else {}


def count_axis(axes: "Axes", most: int, label: str = "frames", *, fontsize: float = 8) -> None:
    """Let the horizontal axis count from 0, in numbers such as 500K and 10M."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(0, most)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda x, _: count_text(round(x)))
    axes.set_xlabel(label, fontsize=fontsize)
    axes.tick_params(labelsize=fontsize)


def score_axis(axes: "Axes", label: str = "score", *, fontsize: float = 8) -> None:
    """Let the vertical axis show scores; only large ones are shortened."""
    axes.yaxis.set_major_formatter(lambda y, _: count_text(round(y)) if abs(y) >= 10_000 else f"{y:g}")
    axes.set_ylabel(label, fontsize=fontsize)
    axes.tick_params(labelsize=fontsize)


_LONGEST_BESIDE_OTHERS = 30  # letters of a name in a legend


def legend_below(figure: "Figure", axes: "Axes", *, columns: int = 2, fontsize: float = 8) -> None:
    """Name the lines of a panel below it, where no data are."""
    handles, labels = axes.get_legend_handles_labels()
    if max(map(len, labels), default=0) > _LONGEST_BESIDE_OTHERS:
        columns = 1
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(columns, len(labels)),
        frameon=False,
        fontsize=fontsize,
        handlelength=2.6,
    )


def save_figure(figure: "Figure", *paths: Path) -> None:
    """Write a figure in the formats given by the file endings, the same bytes each time."""
    for path in paths:
        write_atomically(path, figure_bytes(figure, path.suffix[1:], salt=path.name))


def figure_bytes(figure: "Figure", kind: str, *, salt: str) -> bytes:
    """Return a figure as a file of a format, the same bytes each time; the salt makes the ids within an SVG unique."""
    import matplotlib as mpl

    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(content, format=kind, metadata=undated)
    figure.set_layout_engine("none")  # it is laid out now: to do it again takes long, and moves things a little
    return content.getvalue()
