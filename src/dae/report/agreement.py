"""How far our scores are from the paper's, where the runs are the paper's."""

import math
from collections.abc import Sequence
from typing import Any

from dae.envs import families
from dae.paper import Score, paper_scores
from dae.report.cells import Cell, Cells
from dae.report.departures import repeats_the_paper
from dae.report.score_tables import anchor, short_names
from dae.report.tables import Entry, Table
from dae.report.text import METRICS, domain_name, method_name, number, slug

LARGE = 2.0  # standard errors: one in twenty differences is as large by chance
_ANY = "*"
_EXPLAINED = f"{_ANY} The paper's runs differ so much that even a score of 0 would be within ± {LARGE:g}."


def agreement_table(cells: Cells, domain: str, network: str) -> Table | None:
    """Return the differences from the paper in standard errors, of runs in the score table with its size and settings.

    None if there are no such runs.
    """
    printed = {method for d, n, _, _, method in paper_scores() if (d, n) == (domain, network)}
    alike = (c for c in cells.where(domain=domain, network=network) if repeats_the_paper(c) and c.key.method in printed)
    inside = Cells(alike)
    if not len(inside):
        return None
    (seeds,) = (family.protocol.seeds for family in families() if family.name == domain and family.protocol)
    names, methods = short_names(inside.values("env")), inside.values("method")
    rows, data = [], []
    for env, name in names.items():
        row = [Entry(name)]
        for metric in METRICS:
            for method in methods:
                cell = inside.get(domain, env, network, method)
                entry = Entry("–")
                if cell:
                    paper = paper_scores()[domain, network, name, metric, method]
                    entry, away = difference_entry(cell, metric, paper, seeds)
                    data.append(_data(cell, metric, away))
                row.append(entry)
        rows.append(row)
    columns = [("", "Environment"), *((METRICS[metric], method_name(m)) for metric in METRICS for m in methods)]
    caption = f"{domain_name(domain)}, {network} network: differences from the paper's scores, in standard errors"
    notes = [
        f"Ours − paper's, divided by σ·√(1/n + 1/{seeds}): n is the number of our seeds, and σ the standard deviation "
        f"of a run in the paper, its printed standard error × √{seeds}. If scores were normal, runs of the same "
        "distribution would be within ± 1 in two cases of three and within ± 2 in 19 of 20; larger differences are "
        "bold. Errors are printed with one decimal, so that where they are small this is rough.",
    ]
    return Table(f"agreement-{domain}-{slug(network)}", caption, columns, rows, data, [*notes, *star_notes(rows)])


def difference_entry(cell: Cell, metric: str, paper: Score, seeds: int) -> tuple[Entry, float]:
    """Return how far a score is from the paper's, as a table shows it and as a number."""
    away = difference(cell, metric, paper, seeds)
    text = "–" if math.isnan(away) else f"{away:+.1f}"
    star = _ANY if is_blind(cell, paper, seeds) else ""
    return Entry(text + star, strong=abs(away) > LARGE, link=anchor(cell)), away


def star_notes(rows: Sequence[Sequence[Entry]]) -> list[str]:
    """Explain the stars of a table, if it has any."""
    return [_EXPLAINED] if any(entry.text.endswith(_ANY) for row in rows for entry in row) else []


def is_blind(cell: Cell, paper: Score, seeds: int) -> bool:
    """Say whether the paper's runs differ so much that no score would be too low."""
    return bool(paper.error) and paper.mean > 0 and _in_errors(-paper.mean, cell, paper, seeds) >= -LARGE


def difference(cell: Cell, metric: str, paper: Score, seeds: int) -> float:
    """Return how far our mean is from the paper's, in standard errors of the difference; NaN if those are unknown.

    The spread of runs is the paper's, so that one seed of ours is enough.
    """
    if not paper.error:  # it is printed as 0.0
        return math.nan
    return _in_errors(cell.ours[metric].mean - paper.mean, cell, paper, seeds)


def _in_errors(gap: float, cell: Cell, paper: Score, seeds: int) -> float:
    return gap / (paper.error * math.sqrt(seeds) * math.sqrt(1 / len(cell.runs) + 1 / seeds))


def _data(cell: Cell, metric: str, away: float) -> dict[str, Any]:
    return {**cell.key._asdict(), "metric": metric, "seeds": len(cell.runs), "standard_errors": number(away)}
