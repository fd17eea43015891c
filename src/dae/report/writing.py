"""Writing a report: tables, figures, all numbers, and the page, into one folder."""

import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dae.files import write_atomically
from dae.pictures import save_figure
from dae.report.analysis import Analysis
from dae.report.contents import Figure, contents
from dae.report.page import render_page
from dae.report.provenance import full_command
from dae.report.svg import css_variables, inline_svg
from dae.report.tables import Table
from dae.report.text import METRICS, number


def write_report(analysis: Analysis, roots: Sequence[Path], out: Path) -> Path:
    """Write everything and return the page; the same runs give the same bytes."""
    sections = contents(analysis)
    blocks = [block for section in sections for block in section.blocks]
    tables = [table for block in blocks for table in (block.tables if block.files is None else block.files)]
    for table in tables:
        for ending, text in (("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.to_csv())):
            _write(out / "tables" / f"{table.name}.{ending}", text)
    drawn = _draw((figure for block in blocks for figure in block.figures), analysis.cells.values("method"), out)
    _write(out / "summary.json", json.dumps(_summary(analysis, tables), indent=1) + "\n")
    page = out / "index.html"
    axis = [] if analysis.axis == "frames" else ["--axis", analysis.axis]
    command = shlex.join(["dae", "report", *map(str, roots), *axis])
    _write(page, render_page(analysis, sections, drawn, command, out))
    return page


def _draw(figures: Iterable[Figure], methods: Sequence[str], out: Path) -> dict[str, str]:
    """Draw each figure once: into its files, and as a part of the page, which is returned by name."""
    variables, drawn = css_variables(methods), {}
    for figure in figures:
        drawing = figure.draw()
        if figure.in_files:
            save_figure(drawing, *(out / "figures" / f"{figure.name}.{kind}" for kind in ("png", "svg", "pdf")))
        if figure.on_page:
            drawn[figure.name] = inline_svg(drawing, figure.name, figure.description, variables)
    return drawn


def _write(path: Path, text: str) -> None:
    write_atomically(path, text.encode(errors="backslashreplace"))  # names of folders may not be text


def _summary(analysis: Analysis, tables: Sequence[Table]) -> dict[str, Any]:
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
                {"command": full_command(other), "folders": [run.path for run in other.runs]} for other in cell.others
            ],
        }
        for cell in analysis.cells
    ]
    return {
        "axis": analysis.axis,
        "departures": analysis.departures,
        "left_out": [vars(left) for left in analysis.left_out],
        "cells": cells,
        "tables": {table.name: list(table.data) for table in tables},
        "notes": {table.name: list(table.notes) for table in tables if table.notes},
    }
