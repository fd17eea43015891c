"""The common look of all figures. matplotlib loads when something is drawn."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dae.files import write_atomically

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


def draw_band(
    axes: "Axes", x: ArrayLike, mean: ArrayLike, error: ArrayLike, *, colour: str, label: str, **line: Any
) -> None:
    """Draw a line with a band of ± error around it; where there is no error, there is no band."""
    centre, half = np.asarray(mean, float), np.nan_to_num(np.asarray(error, float))
    axes.fill_between(x, centre - half, centre + half, color=colour, alpha=0.2, lw=0)
    axes.plot(x, centre, color=colour, label=label, **({"lw": 1.6} | line))


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
