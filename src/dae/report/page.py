"""The page: everything in one HTML file that needs no other, no network and no script."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dae import __version__
from dae.catalog import colour_of
from dae.envs import families
from dae.report import provenance
from dae.report.analysis import Analysis
from dae.report.cells import Cell, summary_of
from dae.report.contents import Section
from dae.report.reading import AXIS_LABELS
from dae.report.score_tables import anchor
from dae.report.svg import css_variables
from dae.report.text import METRICS, domain_name, method_name, plural, score_text, slug


def render_page(
    analysis: Analysis, sections: Sequence[Section], drawn: Mapping[str, str], command: str, out: Path
) -> str:
    """Return the page as text; everything that comes out of a run's folder is escaped. `drawn` has figures as SVG.

    Links to other pages start at `out`, the page's folder.
    """
    variables = css_variables(analysis.cells.values("method"))
    environment = Environment(
        loader=PackageLoader("dae.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    environment.filters |= {
        "address": lambda path: quote(os.fsencode(Path(os.path.relpath(path, out)).as_posix())),
        "anchor": anchor,
        "colour": colour_of,
        "domain_name": domain_name,
        "folders": lambda number: plural(number, "folder"),
        "full_command": provenance.full_command,
        "made_with": provenance.made_with,
        "method_name": method_name,
        "scores": _scores,
        "seeds": provenance.seeds_text,
        "short_command": provenance.short_command,
        "slug": slug,
        "summary": summary_of,
        "svg": lambda figure: Markup(drawn[figure.name]),
        "unbroken": _unbroken,
        "variable": variables.__getitem__,
    }
    with_numbers = {family.name for family in families() if family.protocol}
    text = environment.get_template("page.html").render(
        analysis=analysis,
        sections=sections,
        command=command,
        version=__version__,
        methods=list(variables),
        frames=AXIS_LABELS[analysis.axis],
        in_the_paper=bool(with_numbers & set(analysis.cells.values("domain"))),
    )
    return re.sub(r"\n\s*\n", "\n", text).strip() + "\n"


def _scores(cell: Cell) -> str:
    return "; ".join(f"{name} {score_text(cell.ours[metric])}" for metric, name in METRICS.items())


def _unbroken(command: str) -> Markup:
    """Keep each option and its value in one piece where the line is broken."""
    return Markup(re.sub(r"(--[\w-]+ [^\s;]+)", r"<span>\1</span>", str(escape(command))))
