"""The committed results: tables and numbers are those of the committed runs, and documents quote them as they are."""

import re
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from dae.cli import main
from tests.fuzzing.readers import NoFigures

ROOT = Path(__file__).parents[1]
REPORTED = sorted(path.parent for path in (ROOT / "results").glob("*/report"))
LAPTOP = ROOT / "results" / "laptop"


def test_there_are_results_and_all_have_a_summary() -> None:
    groups = sorted(path for path in (ROOT / "results").iterdir() if path.is_dir())
    assert all(any(group.rglob("scores.json")) for group in groups)
    assert groups == sorted([*REPORTED, LAPTOP])


@pytest.mark.parametrize("group", REPORTED, ids=lambda path: path.name)
def test_tables_are_those_of_the_committed_runs(group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with patch("dae.report.writing._draw", lambda *_: NoFigures()):
        assert main(["report", str(group.relative_to(ROOT)), "--out", str(tmp_path)]) == 0
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.*") if path.suffix != ".html"}
    committed = (path for path in (group / "report").rglob("*.*") if path.parent.name != "figures")
    assert made == {
        path.relative_to(group / "report"): path.read_text() for path in committed if path.suffix != ".html"
    }


def test_minutes_to_a_score_are_those_of_the_committed_runs(tmp_path: Path) -> None:
    copy = tmp_path / "laptop"
    shutil.copytree(LAPTOP, copy)
    (copy / "laptop.md").unlink()
    assert main(["sweep", "laptop", "--out", str(copy)]) == 0
    assert (copy / "laptop.md").read_text() == (LAPTOP / "laptop.md").read_text()


def test_documents_quote_the_tables_as_they_are() -> None:
    """What follows a comment with the name of a table's file is that table."""
    quoted = 0
    for document in [*ROOT.glob("docs/*.md"), ROOT / "README.md"]:
        for name, after in re.findall(r"<!-- (results/\S*?) *-->\n((?:\|.*\n)*)", document.read_text()):
            tables = re.findall(r"(?:^\|.*\n)+", (ROOT / name).read_text(), re.MULTILINE)
            assert after in tables, f"{document.name} has another table than {name}"
            quoted += 1
    assert quoted
