"""The tables of variants: the same estimator, environment and network with other settings, side by side."""

import math
from typing import Any

from dae.envs import families
from dae.paper import Score, paper_scores
from dae.report.agreement import LARGE, difference
from dae.report.cells import Cell, Cells, show_setting, unlike
from dae.report.departures import repeats_the_paper
from dae.report.score_tables import anchor, score_data, short_names
from dae.report.tables import Entry, Table
from dae.report.text import METRICS, domain_name, method_name, number, printed_text, score_decimals, score_text, slug
from dae.text import count_text


def variants_table(cells: Cells, domain: str, network: str) -> Table | None:
    """Return the scores of all runs of cells that have several settings, None if no cell has.

    Beside them stand the paper's scores and, for runs with the paper's size and settings, how far they are from it.
    """
    inside = [cell for cell in cells.where(domain=domain, network=network) if cell.others]
    if not inside:
        return None
    names = short_names(list(dict.fromkeys(cell.key.env for cell in inside)))
    seeds = next((family.protocol.seeds for family in families() if family.name == domain and family.protocol), 0)
    rows, data = [], []
    for cell in inside:
        group = [cell, *cell.others]
        differing = unlike([one.settings for one in group])
        decimals = {metric: score_decimals(one.ours[metric] for one in group) for metric in METRICS}
        for one in group:
            told = ", ".join(f"{name}={show_setting(name, getattr(one.settings, name))}" for name in differing)
            row = [Entry(f"{names[cell.key.env]}, {method_name(cell.key.method)}: {told}")]
            for metric in METRICS:
                paper = paper_scores().get((domain, network, names[cell.key.env], metric, cell.key.method))
                away = difference(one, metric, paper, seeds) if paper and repeats_the_paper(one) else math.nan
                row += [
                    Entry(score_text(one.ours[metric], decimals[metric]), link=anchor(cell)),
                    Entry(printed_text(paper), quoted=True),
                    Entry("–" if math.isnan(away) else f"{away:+.1f}", strong=abs(away) > LARGE),
                ]
                data.append(_data(one, told, metric, paper, away))
            rows.append([*row, Entry(str(len(one.runs))), Entry(count_text(one.frames))])
    of_metrics = [(name, column) for name in METRICS.values() for column in ("ours", "paper", "apart")]
    columns = [("", "Runs"), *of_metrics, ("Ours", "Seeds"), ("Ours", "Frames")]
    empty = {place for place in range(len(columns)) if all(row[place].text == "–" for row in rows)}
    notes = ["Of each group the first stands in the other tables and figures."]
    if any(row[place].text != "–" for row in rows for place, (_, name) in enumerate(columns) if name == "apart"):
        notes.append(
            "Apart: the difference from the paper's score in standard errors, where runs have the paper's size and "
            "settings but for what it leaves open."
        )
    return Table(
        f"variants-{domain}-{slug(network)}",
        f"{domain_name(domain)}, {network} network: the same with other settings",
        [column for place, column in enumerate(columns) if place not in empty],
        [[entry for place, entry in enumerate(row) if place not in empty] for row in rows],
        data,
        notes,
    )


def _data(cell: Cell, settings: str, metric: str, paper: Score | None, away: float) -> dict[str, Any]:
    return {**score_data(cell, metric, paper), "settings": settings, "standard_errors": number(away)}
