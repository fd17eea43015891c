"""The tables of variants: the same estimator, environment and network with other settings, side by side."""

import math
from collections.abc import Iterator
from typing import Any

from dae.paper import paper_scores
from dae.report.agreement import difference_entry, star_notes
from dae.report.cells import Cell, Cells, show_setting, unlike
from dae.report.departures import repeats_the_paper
from dae.report.score_tables import anchor, score_data, short_names
from dae.report.tables import Entry, Table
from dae.report.text import METRICS, domain_name, method_name, number, printed_text, score_decimals, score_text, slug
from dae.text import count_text

_APART = "apart"


def variants_table(cells: Cells, domain: str, network: str) -> Table | None:
    """Return the scores of all runs of cells that have several settings, None if no cell has.

    Beside them stand the paper's scores and, for runs with the paper's size and settings, how far they are from it.
    """
    inside = [cell for cell in cells.where(domain=domain, network=network) if cell.others]
    if not inside:
        return None
    lines = [line for cell in inside for line in _side_by_side(cell)]
    rows, data = [row for row, _ in lines], [numbers for _, both in lines for numbers in both]
    of_metrics = [(name, column) for name in METRICS.values() for column in ("ours", "paper", _APART)]
    columns = [("", "Runs"), *of_metrics, ("Ours", "Seeds"), ("Ours", "Frames")]
    kept = [place for place in range(len(columns)) if any(row[place].text != "–" for row in rows)]
    columns = [columns[place] for place in kept]
    rows = [[row[place] for place in kept] for row in rows]
    notes = ["Of each group the first stands in the other tables and figures."]
    if any(name == _APART for _, name in columns):
        notes.append(
            "Apart: the difference from the paper's score in standard errors, where runs have the paper's size and "
            "settings but for what it leaves open."
        )
    caption = f"{domain_name(domain)}, {network} network: the same with other settings"
    return Table(f"variants-{domain}-{slug(network)}", caption, columns, rows, data, [*notes, *star_notes(rows)])


def _side_by_side(cell: Cell) -> Iterator[tuple[list[Entry], list[dict[str, Any]]]]:
    """Return a line for each of the settings that a cell was run with: what is shown, and its numbers."""
    domain, env, network, method = cell.key
    protocol, (name,) = cell.settings.family.protocol, short_names([env]).values()
    group = [cell, *cell.others]
    differing = unlike([one.settings for one in group])
    decimals = {metric: score_decimals(one.ours[metric] for one in group) for metric in METRICS}
    for one in group:
        settings = ", ".join(f"{own}={show_setting(own, getattr(one.settings, own))}" for own in differing)
        row, data = [Entry(f"{name}, {method_name(method)}: {settings}")], []
        for metric in METRICS:
            paper = paper_scores().get((domain, network, name, metric, method))
            apart, away = Entry("–"), math.nan
            if paper and protocol and repeats_the_paper(one):
                apart, away = difference_entry(one, metric, paper, protocol.seeds)
            ours = Entry(score_text(one.ours[metric], decimals[metric]), link=anchor(cell))
            row += [ours, Entry(printed_text(paper), quoted=True), apart]
            data.append({**score_data(one, metric, paper), "settings": settings, "standard_errors": number(away)})
        yield [*row, Entry(str(len(one.runs))), Entry(count_text(one.frames))], data
