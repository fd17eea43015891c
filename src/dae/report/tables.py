"""A table, and how it is written in Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A cell of a table."""

    text: str
    strong: bool = False
    quoted: bool = False  # from the paper
    link: str = ""  # where on the page it comes from


@dataclass(frozen=True)
class Table:
    """What a table shows; `data` are its numbers, tidy, for the CSV file."""

    name: str
    caption: str
    columns: Sequence[tuple[str, str]]  # heading above (equal neighbours share one), heading
    rows: Sequence[Sequence[Entry]]
    data: Sequence[dict[str, Any]]
    notes: Sequence[str] = field(default=())

    @property
    def heads(self) -> list[tuple[str, int]]:
        """The headings above, each with the number of columns that it spans."""
        spans: list[tuple[str, int]] = []
        for above, _ in self.columns:
            if spans and above and spans[-1][0] == above:
                spans[-1] = (above, spans[-1][1] + 1)
            else:
                spans.append((above, 1))
        return spans

    def to_markdown(self) -> str:
        titles = [_markdown(f"{above} {name}".strip()) for above, name in self.columns]
        lines = [_markdown_row(titles), _markdown_row(["---"] + ["---:"] * (len(titles) - 1))]
        for row in self.rows:
            shown = [_markdown(entry.text) for entry in row]
            lines.append(_markdown_row([f"**{t}**" if e.strong else t for t, e in zip(shown, row, strict=True)]))
        notes = [f"- {_markdown(note)}" for note in self.notes]
        return "\n".join([f"**{_markdown(self.caption)}**", "", *lines, *(["", *notes] if notes else []), ""])

    def to_latex(self) -> str:
        """Write it with booktabs, as the paper's tables are."""
        above = " & ".join(rf"\multicolumn{{{n}}}{{c}}{{{_latex(name)}}}" for name, n in self.heads)
        lines = [" & ".join(_latex(name) for _, name in self.columns)]
        for row in self.rows:
            lines.append(" & ".join(rf"\textbf{{{_latex(e.text)}}}" if e.strong else _latex(e.text) for e in row))
        head, *body = [f"    {line} \\\\" for line in lines]
        return "\n".join(
            [
                r"\begin{table}",
                r"    \centering",
                rf"    \caption{{{_latex(' '.join([self.caption + '.', *self.notes]))}}}",
                rf"    \begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
                r"    \toprule",
                f"    {above} \\\\",
                head,
                r"    \midrule",
                *body,
                r"    \bottomrule",
                r"    \end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def to_csv(self) -> str:
        written = io.StringIO()
        writer = csv.DictWriter(written, list(self.data[0]) if self.data else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.data)
        return written.getvalue()


def _markdown(text: str) -> str:
    return text.replace("\\", r"\\").replace("|", r"\|").replace("<", "&lt;").replace("\n", " ")


def _markdown_row(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


_LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "·": r"$\cdot$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
} | {character: f"\\{character}" for character in "&%$#_{}"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
