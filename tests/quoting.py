"""The tables of the committed results that documents quote; `make results` has them written anew by this module.

A quoted table stands under a comment with the name of its file: `<!-- results/GROUP/…/TABLE.md -->`.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUOTATION = re.compile(r"<!-- (?P<source>results/\S*?) *-->\n(?P<table>(?:\|.*\n)*)")
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def quoting_documents(root: Path) -> list[Path]:
    return [
        path for path in [root / "README.md", *sorted(root.glob("docs/*.md"))] if QUOTATION.search(path.read_text())
    ]


def with_tables_as_they_are(document: str, root: Path) -> str:
    """The document with each quoted table as its file has it now; of several the one with the same columns."""

    def quotation(found: re.Match[str]) -> str:
        tables = TABLE.findall((root / found["source"]).read_text())
        columns = found["table"].partition("\n")[0]
        chosen = tables if len(tables) == 1 else [table for table in tables if table.partition("\n")[0] == columns]
        if len(chosen) != 1:
            raise ValueError(
                f"{found['source']} has {len(chosen)} tables with the columns {columns!r}: quote one by hand"
            )
        return f"<!-- {found['source']} -->\n{chosen[0]}"

    return QUOTATION.sub(quotation, document)


def main() -> None:
    for path in quoting_documents(ROOT):
        before = path.read_text()
        after = with_tables_as_they_are(before, ROOT)
        if after != before:
            path.write_text(after)
            print(f"{path.relative_to(ROOT)}: tables as in results/; the text around them is yours to check")


if __name__ == "__main__":
    main()
