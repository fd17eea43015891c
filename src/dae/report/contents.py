"""What a report holds, in order. A new table or figure is a function here and its line in `OF_A_DOMAIN`."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dae.report import figures
from dae.report.agreement import agreement_table
from dae.report.analysis import Analysis
from dae.report.cells import Cells
from dae.report.departures import behind_the_numbers
from dae.report.films import Film, find_films
from dae.report.normalising import Normalised
from dae.report.robust_tables import improvement_table, iqm_table
from dae.report.score_tables import score_table, short_names
from dae.report.tables import Table
from dae.report.text import METRICS, domain_name, method_name, slug
from dae.report.variants_tables import variants_table
from dae.report.wins_tables import wins_tables
from dae.runs import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Figure:
    """A figure on the page, in files, or both."""

    name: str
    description: str
    draw: "Callable[[], Drawing]"
    on_page: bool = True
    in_files: bool = True
    caption: str = ""  # below the figure, on the page: what its lines and bars are


@dataclass(frozen=True)
class Link:
    """A page beside the report."""

    text: str
    path: Path


@dataclass(frozen=True)
class Block:
    """What stands under one heading, in this order; tables are also written to files."""

    title: str = ""
    key: Cells | None = None  # whose colours are explained
    figures: Sequence[Figure] = ()
    films: Sequence[Film] = ()
    links: Sequence[Link] = ()
    layout: str = ""  # how figures share the page's width: `large` ones are wider, of `robust` ones the first is high
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()  # on all of the above; what is about one table stands under it
    files: Sequence[Table] | None = None  # in place of `tables`, where files hold other ones


@dataclass(frozen=True)
class Section:
    """A part of the report with a place in its table of contents."""

    anchor: str
    title: str
    blocks: Sequence[Block]


def contents(analysis: Analysis) -> list[Section]:
    """Return everything that a report shows."""
    wins = wins_tables(analysis.compared)
    sections = [Section("wins", "Wins", [Block(tables=wins)])] if wins else []
    for domain in analysis.cells.values("domain"):
        blocks = [block for part in OF_A_DOMAIN for block in part(analysis, domain)]
        sections.append(Section(domain, domain_name(domain), blocks))
    return sections


def scores(analysis: Analysis, domain: str) -> Iterator[Block]:
    """Scores beside the paper's: one table in files, as the paper has it, and one for each metric on the page."""
    inside = analysis.cells.where(domain=domain)
    for network in inside.values("network"):
        overall, last = (score_table(inside, domain, network, (metric,)) for metric in METRICS)
        yield Block(
            f"Scores, {network} network",
            tables=[dataclasses.replace(table, notes=()) for table in (overall, last)],
            notes=last.notes,
            files=[score_table(inside, domain, network)],
        )


def agreement(analysis: Analysis, domain: str) -> Iterator[Block]:
    """How far from the paper's scores, for runs of the paper's size."""
    found = _of_each_network(agreement_table, analysis, domain)
    if found:
        notes = list(dict.fromkeys(note for table in found for note in table.notes))
        shown = [dataclasses.replace(table, notes=()) for table in found]
        yield Block("Agreement with the paper", tables=shown, notes=notes, files=found)


def variants(analysis: Analysis, domain: str) -> Iterator[Block]:
    """Runs that differ in more than the seed from those in the other tables."""
    found = _of_each_network(variants_table, analysis, domain)
    if found:
        yield Block("Other settings", tables=found)


def _of_each_network(make: Callable[[Cells, str, str], Table | None], analysis: Analysis, domain: str) -> list[Table]:
    """Return a kind of table for each network that has one."""
    networks = analysis.cells.where(domain=domain).values("network")
    return [table for network in networks if (table := make(analysis.cells, domain, network))]


def curves(analysis: Analysis, domain: str) -> Iterator[Block]:
    """Learning curves: a panel for each environment on the page, and all of them as one figure in files."""
    for network in analysis.cells.where(domain=domain).values("network"):
        inside = analysis.cells.where(domain=domain, network=network)
        panels = [(name, inside.where(env=env)) for env, name in short_names(inside.values("env")).items()]
        drawn = [
            Figure(
                f"curve-{domain}-{slug(network)}-{place}",
                f"Learning curves on {name}, {network} network",
                partial(figures.curve_panel, cells, name),
                in_files=False,
            )
            for place, (name, cells) in enumerate(panels)
        ]
        title = f"{domain_name(domain)}, {network} network"
        all_panels = partial(figures.curve_grid, panels, title)
        grid = Figure(f"curves-{domain}-{slug(network)}", title, all_panels, on_page=False)
        yield Block(f"Learning curves, {network} network", key=inside, figures=[*drawn, grid])


def normalised_curves(analysis: Analysis, domain: str) -> Iterator[Block]:
    """Curves averaged over environments, on the scale of a reference."""
    found = [n for n in analysis.normalised if n.domain == domain]
    if found:
        drawn = [
            Figure(
                f"normalised-{domain}-{n.reference}",
                f"{method_name(n.reference)}-normalised learning curves",
                partial(figures.normalised_panel, n),
                caption=(
                    "Mean over environments, ± standard error over seeds. Dotted line at 1: the mean score of "
                    f"{_reference(n)} in its last hundredth of frames."
                )
                + " Thin dotted curves: some environment has had no episode yet." * _begins_late(n),
            )
            for n in found
            if n.groups
        ]
        notes = list(dict.fromkeys(note for n in found for note in n.notes))
        yield Block("Normalised mean curves", figures=drawn, layout="large", notes=notes)


def robust_statistics(analysis: Analysis, domain: str) -> Iterator[Block]:
    """Performance profiles, interquartile means and probabilities of improvement."""
    scale = analysis.scale(domain)
    compared = [c for c in analysis.compared if c.domain == domain]
    drawn, tables = [], []
    if scale:
        end = f"the mean score of {_reference(scale)} in its last hundredth of frames"
        drawn.append(
            Figure(
                f"profile-{domain}",
                "Performance profiles",
                partial(figures.profile_panel, scale),
                caption=f"The fraction of runs whose final score is above τ, with its 95 % interval. 1 is {end}.",
            )
        )
        drawn.append(
            Figure(
                f"iqm-{domain}",
                "Interquartile means",
                partial(figures.iqm_panel, scale),
                caption=f"Dots: interquartile means; bars: their 95 % intervals. Dotted line at 1: {end}.",
            )
        )
        tables.append(iqm_table(scale))
    if compared:
        panel = partial(figures.improvement_panel, compared, domain)
        drawn.append(
            Figure(
                f"improvement-{domain}",
                "Probabilities of improvement",
                panel,
                caption="Dots: the chance that a run of the first has the better final score; bars: 95 % intervals. "
                "Dotted line at 0.5: neither is better.",
            )
        )
        tables.append(improvement_table(compared, domain))
    if drawn:
        layout = "large robust" if scale else "large"
        yield Block("Robust statistics", figures=drawn, layout=layout, tables=tables)


def _reference(scale: Normalised) -> str:
    return f"{method_name(scale.reference)} with the baseline network"


def episodes(analysis: Analysis, domain: str) -> Iterator[Block]:
    """An episode to watch for each cell of which some run has a film, and the pages of the credit explorer."""
    cells = analysis.cells.where(domain=domain)
    films, notes = find_films(cells)
    if films or notes:
        yield Block("Episodes to watch", films=films, notes=notes)
    pages = [(cell, run, RunFolder(Path(run.path)).explorer) for cell in cells for run in cell.runs]
    links = [
        Link(f"{cell.name}, seed {run.settings.seed}", page)
        for cell, run, page in pages
        if page.is_file() and not (page.is_symlink() or page.parent.is_symlink())
    ]
    if links:
        yield Block("Which decisions mattered", links=links)


def _begins_late(scale: Normalised) -> bool:
    return any(group.complete_from for group in scale.groups)


def known_differences(analysis: Analysis, domain: str) -> Iterator[Block]:
    """What is behind the paper's printed numbers and not in these runs, even where all settings are the paper's."""
    told = behind_the_numbers(analysis.cells, domain)
    if told:
        yield Block(
            "Known differences behind the paper's numbers", notes=[f"The authors' code: {text}." for text in told]
        )


OF_A_DOMAIN: tuple[Callable[[Analysis, str], Iterable[Block]], ...] = (
    scores,
    agreement,
    variants,
    curves,
    normalised_curves,
    robust_statistics,
    episodes,
    known_differences,
)
