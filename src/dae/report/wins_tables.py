"""The tables of wins: ours, the paper's as it was printed, and what the paper's scores give by the same rule."""

from typing import Any

from dae.paper import PAIR, WINS
from dae.report.cells import sizes
from dae.report.comparing import Comparison, Wins, paper_recount
from dae.report.tables import Entry, Table
from dae.report.text import METRICS, domain_name, listed, method_name, plural

# Found by trying; `tests/report/test_comparing.py` counts it again.
_CLOSEST_RULE = (
    "Of the rules tried, one comes closest to the printed table: DAE if its interval lies above; else GAE if its lower "
    "end reaches DAE's upper end; else similar. It gives three of the six Atari columns exactly, the others off by one."
)


def wins_tables(compared: list[Comparison]) -> list[Table]:
    """Return a table for each pair of estimators; GAE against DAE has the paper's beside it."""
    tables = []
    for first, second in dict.fromkeys((c.first, c.second) for c in compared):
        tables.append(_wins_table([c for c in compared if (c.first, c.second) == (first, second)], first, second))
    return tables


def _wins_table(compared: list[Comparison], first: str, second: str) -> Table:
    found = {(c.domain, c.network): c for c in compared}
    domains = list(dict.fromkeys(c.domain for c in compared))
    networks = list(dict.fromkeys(c.network for c in compared))
    with_paper = (first, second) == PAIR
    printed_domains = {domain for domain, _, _ in WINS}
    columns = [("", "Network"), ("", "Won by")]
    for metric in METRICS.values():
        for domain in domains:
            columns.append((f"{metric}, {domain_name(domain)}", "ours"))
            if with_paper and domain in printed_domains:
                columns += [(f"{metric}, {domain_name(domain)}", name) for name in ("paper", "recounted")]
    rows, data = [], []
    outcomes = {"first": method_name(first), "second": method_name(second), "similar": "Similar"}
    if any(c.wins(metric).undecided for c in compared for metric in METRICS):
        outcomes["undecided"] = "Undecided (one seed)"
    for network in networks:
        for k, (outcome, name) in enumerate(outcomes.items()):
            row = [Entry("" if k else network), Entry(name)]
            for metric in METRICS:
                for domain in domains:
                    comparison = found.get((domain, network))
                    ours = comparison.wins(metric) if comparison else None
                    row.append(Entry(str(getattr(ours, outcome))) if ours else Entry("–"))
                    if with_paper and domain in printed_domains:
                        printed = WINS.get((domain, network, metric), ())
                        recount = paper_recount(domain, network, metric)
                        known = recount.environments > 0 and outcome != "undecided"  # the paper has many seeds
                        row.append(Entry(str(printed[k]) if known else "–", quoted=True))
                        row.append(Entry(str(getattr(recount, outcome)) if known else "–", quoted=True))
                    if ours and k == 0:
                        data.append(_wins_data(comparison, metric, ours))
            rows.append(row)
    caption = f"Environments won by {method_name(first)} and by {method_name(second)}"
    notes = [note for comparison in compared for note in comparison.notes]
    sizes = [(c, len(c.cells)) for c in compared]
    notes.insert(
        0, "Ours are counts over " + listed([f"{plural(n, 'environment')} ({_where(c)})" for c, n in sizes]) + "."
    )
    if with_paper and printed_domains & set(domains):
        notes.insert(1, "Recounted: what the paper's printed scores give by the same rule.")
        if "atari" in domains:
            notes.insert(2, _CLOSEST_RULE)
    return Table(f"wins-{first}-{second}", caption, columns, rows, data, notes)


def _where(comparison: Comparison) -> str:
    size = sizes(cell for pair in comparison.cells for cell in pair)
    return f"{domain_name(comparison.domain)}, {comparison.network}, {size}"


def _wins_data(comparison: Comparison | None, metric: str, ours: Wins) -> dict[str, Any]:
    assert comparison is not None
    key = (comparison.domain, comparison.network, metric)
    of_the_paper = (comparison.first, comparison.second) == PAIR and key in WINS
    printed = WINS[key] if of_the_paper else (None, None, None)
    recount = paper_recount(*key) if of_the_paper else None
    return {
        "domain": comparison.domain,
        "network": comparison.network,
        "metric": metric,
        "first": comparison.first,
        "second": comparison.second,
        "first_wins": ours.first,
        "second_wins": ours.second,
        "similar": ours.similar,
        "undecided": ours.undecided,
        **dict(zip(("paper_first_wins", "paper_second_wins", "paper_similar"), printed, strict=True)),
        "recounted_first_wins": recount.first if recount else None,
        "recounted_second_wins": recount.second if recount else None,
        "recounted_similar": recount.similar if recount else None,
    }
