"""A figure as a part of the page: SVG in the page's own ink, so that it is legible in light and in dark."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dae.catalog import colour_of
from dae.pictures import figure_bytes
from dae.report.text import slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def css_variables(methods: Sequence[str]) -> dict[str, str]:
    """Return the variables of the page that hold the estimators' colours; names may differ in odd characters alone."""
    return {method: f"--method-{place}-{slug(method)}" for place, method in enumerate(methods)}


def inline_svg(figure: "Figure", name: str, description: str, variables: Mapping[str, str]) -> str:
    """Return a figure as an element of the page; the name keeps its ids apart from those of other figures."""
    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    text = figure_bytes(figure, "svg", salt=name).decode()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", text, flags=re.DOTALL)  # it is for the whole page
    text = re.sub(r' (xmlns(:\w+)?|version)="[^"]*"', "", text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'xlink:href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r' (?:d|x|y|width|height|transform)="[^"]*"', _with_few_decimals, text)
    text = re.sub(r"\n\s*", "\n", text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = text.replace("#000000", "currentColor")
    for method, variable in variables.items():
        text = text.replace(colour_of(method).light, f"var({variable})")
    text = re.sub(r'^<svg width="[^"]*" height="[^"]*"', "<svg", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(description)}"', 1)


def _with_few_decimals(attribute: re.Match[str]) -> str:
    """Cut the decimals of a path that no screen can show; they are half of a page's size."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", attribute[0])
