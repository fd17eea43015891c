"""Writing a report: tables, figures, all numbers, and the page, into one folder."""

import dataclasses
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dae.files import write_atomically
from dae.pictures import save_figure
from dae.report import figures
from dae.report.analysis import Analysis
from dae.report.behind import full_command
from dae.report.inline import inline_svg
from dae.report.normalising import Normalised
from dae.report.page import Page
from dae.report.robust_tables import improvement_table, iqm_table
from dae.report.score_tables import score_table, short_names
from dae.report.tables import Table
from dae.report.text import DOMAINS, METRICS, method_name, number, slug
from dae.report.wins_tables import wins_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(analysis: Analysis, roots: Sequence[Path], out: Path) -> Path:
    """Write everything and return the page; the same runs give the same bytes."""
    return _Writer(analysis, roots, out).write()


class _Writer:
    def __init__(self, analysis: Analysis, roots: Sequence[Path], out: Path) -> None:
        self.analysis, self.out = analysis, out
        self.page = Page(analysis, shlex.join(["dae", "report", *map(str, roots)]))
        self.tables: list[Table] = []

    def write(self) -> Path:
        wins = wins_tables(self.analysis.compared)
        if wins:
            self.page.section("wins", "Wins")
            self._tables(wins)
        for domain in self.analysis.cells.values("domain"):
            self._domain(domain)
        self._file("summary.json", json.dumps(self._summary(), indent=1) + "\n")
        self._file("index.html", self.page.text())
        return self.out / "index.html"

    def _domain(self, domain: str) -> None:
        self.page.section(domain, DOMAINS[domain])
        inside = self.analysis.cells.where(domain=domain)
        for network in inside.values("network"):
            self.page.heading(f"Scores, {network} network")
            self._write_table(score_table(inside, domain, network))
            overall, last = (score_table(inside, domain, network, (metric,)) for metric in METRICS)
            self.page.tables([dataclasses.replace(overall, notes=()), last])
        for network in inside.values("network"):
            self.page.heading(f"Learning curves, {network} network")
            self._curves(domain, network)
        self._normalised([n for n in self.analysis.normalised if n.domain == domain])
        self._robust(domain)

    def _curves(self, domain: str, network: str) -> None:
        inside = self.analysis.cells.where(domain=domain, network=network)
        names = short_names(inside.values("env"))
        panels = [(name, inside.where(env=env)) for env, name in names.items()]
        self.page.key(inside)
        drawn = []
        for place, (name, cells) in enumerate(panels):
            figure = figures.curve_panel(cells, name)
            label = f"curve-{domain}-{slug(network)}-{place}"
            drawn.append(inline_svg(figure, label, f"Learning curves on {name}, {network} network"))
        self.page.figures(drawn)
        self._save(
            figures.curve_grid(panels, f"{DOMAINS[domain]}, {network} network"), f"curves-{domain}-{slug(network)}"
        )

    def _normalised(self, found: list[Normalised]) -> None:
        if not found:
            return
        self.page.heading("Normalised mean curves")
        drawn = []
        for normalised in found:
            if normalised.groups:
                name = f"normalised-{normalised.domain}-{normalised.reference}"
                description = f"{method_name(normalised.reference)}-normalised learning curves"
                drawn.append(self._figure(figures.normalised_panel(normalised), name, description))
        self.page.figures(drawn, "large")
        self.page.notes(dict.fromkeys(note for normalised in found for note in normalised.notes))

    def _robust(self, domain: str) -> None:
        scale = self.analysis.scale(domain)
        compared = [c for c in self.analysis.compared if c.domain == domain]
        if not scale and not compared:
            return
        self.page.heading("Robust statistics")
        drawn, tables = [], []
        if scale:
            drawn.append(self._figure(figures.profile_panel(scale), f"profile-{domain}", "Performance profiles"))
            drawn.append(self._figure(figures.iqm_panel(scale), f"iqm-{domain}", "Interquartile means"))
            tables.append(iqm_table(scale))
        if compared:
            panel = figures.improvement_panel(compared, domain)
            drawn.append(self._figure(panel, f"improvement-{domain}", "Probabilities of improvement"))
            tables.append(improvement_table(compared, domain))
        self.page.figures(drawn, "large robust" if scale else "large")
        self._tables(tables)

    def _tables(self, tables: list[Table]) -> None:
        self.page.tables(tables)
        for table in tables:
            self._write_table(table)

    def _write_table(self, table: Table) -> None:
        self.tables.append(table)
        for ending, text in (("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.to_csv())):
            self._file(f"tables/{table.name}.{ending}", text)

    def _figure(self, figure: "Figure", name: str, description: str) -> str:
        """Write a figure to its files and return it as a part of the page."""
        self._save(figure, name)
        return inline_svg(figure, name, description)

    def _save(self, figure: "Figure", name: str) -> None:
        save_figure(figure, *(self.out / "figures" / f"{name}.{kind}" for kind in ("png", "svg", "pdf")))

    def _file(self, name: str, text: str) -> None:
        write_atomically(self.out / name, text.encode(errors="backslashreplace"))  # names of folders may be no text

    def _summary(self) -> dict[str, Any]:
        """Return every number of the report, and what it comes from."""
        cells = [
            {
                **cell.key._asdict(),
                "frames": cell.frames,
                "seeds": cell.seeds,
                **{metric: list(map(float, cell.scores(metric))) for metric in METRICS},
                **{f"{m}_mean": cell.ours[m].mean for m in METRICS},
                **{f"{m}_standard_error": number(cell.ours[m].error) for m in METRICS},
                "command": full_command(cell),
                "folders": [run.path for run in cell.runs],
                "other_settings": [
                    {"command": full_command(other), "folders": [run.path for run in other.runs]}
                    for other in cell.others
                ],
            }
            for cell in self.analysis.cells
        ]
        return {
            "departures": self.analysis.departures,
            "left_out": [vars(left) for left in self.analysis.left_out],
            "cells": cells,
            "tables": {table.name: list(table.data) for table in self.tables},
            "notes": {table.name: list(table.notes) for table in self.tables if table.notes},
        }
