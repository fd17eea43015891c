"""The tables of robust statistics: interquartile means and probabilities of improvement, with their intervals."""

import math
from typing import Any

from dae.report.comparing import Comparison
from dae.report.normalising import Normalised
from dae.report.statistics import Estimate
from dae.report.tables import Entry, Table
from dae.report.text import domain_name, method_name, number, span
from dae.text import count_text


def iqm_table(normalised: Normalised) -> Table:
    """Return the interquartile means of the normalised final scores."""
    rows, data = [], []
    for group in normalised.groups:
        iqm = group.iqm
        low, high = _interval_text(iqm)
        rows.append(
            [
                Entry(group.label),
                Entry(f"{iqm.value:.3f}"),
                Entry(low),
                Entry(high),
                Entry(str(len(group.environments))),
                Entry(str(len(group.seeds))),
                Entry(count_text(group.frames)),
            ]
        )
        data.append(
            {
                "domain": normalised.domain,
                "reference": normalised.reference,
                "network": group.network,
                "method": group.method,
                **_interval_data("iqm", iqm),
                "environments": len(group.environments),
                "seeds": len(group.seeds),
                "frames": group.frames,
            }
        )
    columns = [("", "Estimator, network"), ("", "IQM"), ("95 %", "from"), ("95 %", "to")]
    columns += [("Ours", name) for name in ("Environments", "Seeds", "Frames")]
    reference = method_name(normalised.reference)
    caption = f"{domain_name(normalised.domain)}: interquartile mean of {reference}-normalised final scores"
    return Table(f"iqm-{normalised.domain}", caption, columns, rows, data, normalised.notes)


def improvement_table(compared: list[Comparison], domain: str) -> Table:
    """Return the probabilities of improvement in a domain, on final scores."""
    rows, data, notes = [], [], []
    inside = [c for c in compared if c.domain == domain]
    for comparison in inside:
        estimate = comparison.improvement("last")
        low, high = _interval_text(estimate)
        seeds = span([len(cell.runs) for pair in comparison.cells for cell in pair])
        frames = span([cell.frames for pair in comparison.cells for cell in pair])
        counts = [Entry(str(len(comparison.cells))), Entry(seeds), Entry(frames)]
        rows.append([Entry(comparison.name), Entry(f"{estimate.value:.3f}"), Entry(low), Entry(high), *counts])
        data.append(
            {
                "domain": domain,
                "network": comparison.network,
                "first": comparison.second,
                "over": comparison.first,
                **_interval_data("probability", estimate),
                "environments": len(comparison.cells),
            }
        )
        notes += comparison.notes
    columns = [("", "Comparison"), ("", "Probability"), ("95 %", "from"), ("95 %", "to")]
    columns += [("Ours", name) for name in ("Environments", "Seeds", "Frames")]
    caption = f"{domain_name(domain)}: probability that a run of the first has the better final score"
    return Table(f"improvement-{domain}", caption, columns, rows, data, notes)


def _interval_text(estimate: Estimate) -> tuple[str, str]:
    if math.isnan(estimate.low):
        return "–", "–"
    return f"{estimate.low:.3f}", f"{estimate.high:.3f}"


def _interval_data(name: str, estimate: Estimate) -> dict[str, Any]:
    return {name: estimate.value, "low": number(estimate.low), "high": number(estimate.high)}
