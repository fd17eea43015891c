"""The committed results: tables and numbers are those of the committed runs, and documents quote them as they are."""

import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from dae.cli import main
from tests.fuzzing.readers import NoFigures
from tests.quoting import ROOT, quoting_documents, with_tables_as_they_are

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
    documents = quoting_documents(ROOT)
    assert documents
    for document in documents:
        text = document.read_text()
        assert text == with_tables_as_they_are(text, ROOT), f"{document.name} has old tables: make results"


def test_a_quoted_table_is_written_anew_and_nothing_else_is(tmp_path: Path) -> None:
    source = tmp_path / "results" / "two.md"
    source.parent.mkdir()
    source.write_text("# Two\n\n| a |\n| - |\n| 1 |\n\n| b |\n| - |\n| 2 |\n")
    old = "Before.\n<!-- results/two.md -->\n| b |\n| - |\n| 0 |\n\nAfter.\n| c |\n"
    assert with_tables_as_they_are(old, tmp_path) == old.replace("0", "2")
    with pytest.raises(ValueError, match="0 tables"):
        with_tables_as_they_are(old.replace("| b |", "| d |"), tmp_path)
