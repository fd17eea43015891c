"""The tables of scores: ours beside the paper's."""

import math
from collections.abc import Callable
from typing import Any

from dae.envs import family_of
from dae.paper import Score, paper_games, paper_scores
from dae.report.cells import Cell, Cells, summary_of
from dae.report.provenance import made_alike
from dae.report.tables import Entry, Table
from dae.report.text import (
    METRICS,
    domain_name,
    listed,
    method_name,
    number,
    printed_text,
    score_decimals,
    score_text,
    slug,
)
from dae.text import count_text


def short_names(envs: list[str]) -> dict[str, str]:
    """Return the names of environments in a table: without prefix and version where that is unambiguous.

    >>> short_names(["MinAtar/Breakout-v1", "MinAtar/Freeway-v0"])
    {'MinAtar/Breakout-v1': 'Breakout', 'MinAtar/Freeway-v0': 'MinAtar/Freeway-v0'}
    """
    return {env: family_of(env).paper_name(env) or env for env in envs}


def anchor(cell: Cell) -> str:
    """Return the anchor of the details behind a cell's numbers on the page."""
    return "runs-" + slug(" ".join(cell.key))


def score_table(cells: Cells, domain: str, network: str, metrics: tuple[str, ...] = tuple(METRICS)) -> Table:
    """Return ours beside the paper's for a network: with both metrics as the paper's tables have them, or with one."""
    inside = cells.where(domain=domain, network=network)
    methods = inside.values("method")
    with_paper = {method for d, n, _, _, method in paper_scores() if (d, n) == (domain, network)}
    columns = [("", "Environment")]
    for metric in metrics:
        for method in methods:
            name = method_name(method)
            pair = [(name, "ours"), (name, "paper")]
            if len(metrics) > 1:
                pair = [(METRICS[metric], name), (METRICS[metric], f"{name}, paper")]
            columns += pair if method in with_paper else pair[:1]
    alike = len(metrics) == 1 and len({(len(cell.runs), cell.frames) for cell in inside}) == 1  # the caption says it
    columns += [] if alike else [("Ours", "Seeds"), ("Ours", "Frames")]
    rows, data = [], []
    names = short_names(inside.values("env"))
    for env, name in names.items():
        here = {method: inside.get(domain, env, network, method) for method in methods}
        row = [Entry(name)]
        for metric in metrics:
            shown = [cell.ours[metric] for cell in here.values() if cell]
            best, decimals = _clear_best(shown), score_decimals(shown)
            for method, cell in here.items():
                ours = cell.ours[metric] if cell else None
                link = anchor(cell) if cell else ""
                row.append(Entry(score_text(ours, decimals), strong=ours is not None and ours is best, link=link))
                paper = paper_scores().get((domain, network, name, metric, method))
                row += [Entry(printed_text(paper), quoted=True)] if method in with_paper else []
                if cell:
                    data.append(score_data(cell, metric, paper))
        present = [cell for cell in here.values() if cell]
        if not alike:
            row.append(Entry(_each([str(len(cell.runs)) for cell in present])))
            row.append(Entry(_each([count_text(cell.frames) for cell in present])))
        rows.append(row)
    which = "scores" if len(metrics) > 1 else f"{METRICS[metrics[0]]} score"
    caption = f"{domain_name(domain)}, {network} network: {which}, {summary_of(inside)}"
    return Table(f"scores-{domain}-{slug(network)}", caption, columns, rows, data, _score_notes(inside, names))


def _clear_best(scores: list[Score]) -> Score | None:
    """Return the score whose interval of ± 1 standard error lies above all others, if there is one."""
    if len(scores) < 2 or any(math.isnan(score.error) for score in scores):
        return None
    best = max(scores, key=lambda score: score.mean)
    clear = all(best.mean - other.mean > best.error + other.error + 1e-9 for other in scores if other is not best)
    return best if clear else None


def _each(texts: list[str]) -> str:
    """Write one text if all are equal, else each of them, in the order of the columns."""
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def score_data(cell: Cell, metric: str, paper: Score | None) -> dict[str, Any]:
    """Return the numbers behind a score in a table."""
    ours = cell.ours[metric]
    return {
        **cell.key._asdict(),
        "metric": metric,
        "mean": ours.mean,
        "standard_error": number(ours.error),
        "seeds": len(cell.runs),
        "frames": cell.frames,
        "paper_mean": paper.mean if paper else None,
        "paper_standard_error": paper.error if paper else None,
    }


def _score_notes(cells: Cells, names: dict[str, str]) -> list[str]:
    def which(chosen: Callable[[Cell], object]) -> list[str]:
        return [f"{names[cell.key.env]} ({method_name(cell.key.method)})" for cell in cells if chosen(cell)]

    notes = []
    if unlike := which(lambda cell: not made_alike(cell)):
        where = "all scores" if len(unlike) == len(cells) else listed(unlike)
        notes.append(f"The runs were not all made with the same versions and commit; see below: {where}.")
    if several := which(lambda cell: cell.others):
        notes.append(f"Runs with other settings have a table of their own: {listed(several)}.")
    single = which(lambda cell: len(cell.runs) == 1)
    if single and len(single) < len(cells):
        notes.append(f"One seed gives no standard error: {listed(single)}.")
    (domain,) = cells.values("domain")
    missing = [name for name in paper_games(domain) if name not in names.values()]
    if missing:
        notes.append(f"In the paper and not here: {listed(missing)}.")
    return notes
