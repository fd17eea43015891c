"""The page: everything in one HTML file that needs no other, no network and no script."""

import html
import re
from collections.abc import Iterable, Mapping
from importlib import resources

from dae import __version__
from dae.pictures import COLOURS
from dae.report import behind
from dae.report.analysis import Analysis
from dae.report.cells import Cell, Cells, sizes
from dae.report.figures import colour
from dae.report.reading import LeftOut
from dae.report.score_tables import anchor
from dae.report.tables import Table
from dae.report.text import DOMAINS, METRICS, method_name, plural, score_text

# The browser is told to load nothing at all, so that no mistake of ours can make it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Page:
    """Collects the tables and figures, and writes them in the order of the analysis."""

    def __init__(self, analysis: Analysis, command: str) -> None:
        self._analysis, self._command = analysis, command
        self._sections: list[tuple[str, str, list[str]]] = []  # anchor, title, parts

    def section(self, name: str, title: str) -> None:
        self._sections.append((name, title, []))

    def heading(self, title: str) -> None:
        self._add(f"<h3>{html.escape(title)}</h3>")

    def tables(self, tables: Iterable[Table]) -> None:
        """Put tables side by side, where there is room."""
        blocks = "".join(f'<div class="block">{table.to_html()}</div>' for table in tables)
        self._add(f'<div class="tables">{blocks}</div>')

    def figures(self, drawn: Iterable[str], kind: str = "") -> None:
        """Put figures side by side, where there is room; `large` ones are wider, of `robust` ones the first is high."""
        panels = "".join(f"<figure>{svg}</figure>\n" for svg in drawn)
        self._add(f'<div class="figures {kind}">{panels}</div>')

    def key(self, cells: Cells) -> None:
        """Say which colour is which estimator, and what is drawn."""
        hues = {m: f"var(--{m})" if m in COLOURS else colour(m) for m in cells.values("method")}
        items = [f'<li><i style="background:{hue}"></i>{_text(method_name(m))}</li>' for m, hue in hues.items()]
        self._add(f'<ul class="key">{"".join(items)}<li>mean ± standard error over {sizes(cells)}</li></ul>')

    def notes(self, notes: Iterable[str]) -> None:
        items = "".join(f"<li>{_text(note)}</li>" for note in notes)
        if items:
            self._add(f'<ul class="notes">{items}</ul>')

    def text(self) -> str:
        """Return the file."""
        self._add_behind()
        self._add_left_out()
        self._sections.append(("how", "How each number is computed", [_resource("how.html")]))
        style = _resource("page.css")
        links = "".join(f'<li><a href="#{name}">{_text(title)}</a></li>' for name, title, _ in self._sections)
        body = "".join(
            f'<section id="{name}"><h2>{_text(title)}</h2>\n{"".join(parts)}</section>\n'
            for name, title, parts in self._sections
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
            f"<title>Direct Advantage Estimation: results</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
            f"<header><h1>Direct Advantage Estimation: results</h1>\n"
            f'<p class="lead">{_text(self._analysis.counted)}.</p>\n{self._banner()}</header>\n'
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<main>\n{body}</main>\n'
            f"<footer><p>Written by <code>{_text(self._command)}</code>, dae-rl {_text(__version__)}. The tables as "
            "Markdown, LaTeX and CSV and the figures as PNG, SVG and PDF lie beside this file.</p></footer>\n"
            "</body>\n</html>\n"
        )

    def _add(self, part: str) -> None:
        self._sections[-1][2].append(part)

    def _banner(self) -> str:
        lines = self._analysis.departures
        if lines:
            shown = "".join(f'<p class="large">{_text(line)}</p>' for line in lines)
            return f'<div class="banner" role="note"><p>Not the size of the paper\'s experiments:</p>{shown}</div>\n'
        if set(self._analysis.cells.values("domain")) <= {"other"}:
            return '<div class="banner" role="note"><p>The paper has no numbers for these environments.</p></div>\n'
        return '<div class="banner good" role="note"><p>Frames, seeds and settings are the paper\'s.</p></div>\n'

    def _add_behind(self) -> None:
        self.section("behind", "What is behind the numbers")
        cells = self._analysis.cells
        for domain in cells.values("domain"):
            for network in cells.where(domain=domain).values("network"):
                self.heading(f"{DOMAINS[domain]}, {network}")
                self._add("".join(map(_behind, cells.where(domain=domain, network=network))))

    def _add_left_out(self) -> None:
        self.section("left-out", "What was left out")
        left_out = self._analysis.left_out
        if not left_out:
            self._add("<p>Every folder with a file of a run in it counts.</p>")
            return
        rows = "".join(_left_out(left) for left in left_out)
        self._add(
            f"<details{' open' if len(left_out) <= 20 else ''}><summary>{plural(len(left_out), 'folder')}</summary>"
            '<div class="table" tabindex="0" role="region" aria-label="Folders that were left out"><table><thead><tr>'
            '<th class="text" scope="col">Folder</th><th class="text" scope="col">Kind</th>'
            f'<th class="text" scope="col">Why</th></tr></thead><tbody>{rows}</tbody></table></div></details>'
        )


def _resource(name: str) -> str:
    return resources.files("dae.report").joinpath(name).read_text()


def _text(text: str) -> str:
    return html.escape(text)


def _command(text: str) -> str:
    """Keep each option and its value in one piece where the line is broken."""
    return re.sub(r"(--[\w-]+ [^\s;]+)", r"<span>\1</span>", _text(text))


def _behind(cell: Cell) -> str:
    scores = "; ".join(f"{name} {score_text(cell.ours[metric])}" for metric, name in METRICS.items())
    folders = "".join(f"<li><code>{_text(run.path)}</code></li>" for run in cell.runs)
    entries: Mapping[str, str] = {
        "Scores": _text(scores),
        "Runs": _text(behind.seeds_text(cell)),
        "Episodes": f"{sum(run.episodes for run in cell.runs):,}",
        "Command": f"<pre>{_command(behind.short_command(cell))}</pre>",
        "Made with": "<br>".join(_text(way) for way in behind.made_with(cell)),
    }
    listing = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in entries.items())
    others = "".join(
        f"<details><summary>Other settings, not in the tables: {_text(other.size)}</summary>"
        f"<pre>{_command(behind.full_command(other))}</pre></details>"
        for other in cell.others
    )
    command = _command(behind.full_command(cell))
    title = f'{_text(cell.name)} <span class="size">{_text(cell.size)}</span>'
    return (
        f'<details><summary>{title}</summary><dl id="{anchor(cell)}">{listing}</dl>\n'
        f"<details><summary>The command with every setting</summary><pre>{command}</pre></details>\n{others}"
        f'<details><summary>Folders</summary><ul class="notes">{folders}</ul></details></details>\n'
    )


def _left_out(left: LeftOut) -> str:
    cells = "".join(f'<td class="text">{_text(text)}</td>' for text in (left.kind, left.reason))
    return f'<tr><th class="text" scope="row">{_text(left.path)}</th>{cells}</tr>'
