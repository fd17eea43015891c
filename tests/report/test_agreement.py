"""Differences from the paper's scores in standard errors, worked by hand."""

import csv
from pathlib import Path

import pytest

from dae.report.agreement import agreement_table
from dae.report.cells import Cells, make_cells
from dae.report.reading import Result, read_results
from dae.runs import find_runs
from tests.report.folders import write_run

FULL = {"frames": 10_000_000}


def cells_of(root: Path) -> Cells:
    cells, _ = make_cells(r for r in read_results(find_runs([root])) if isinstance(r, Result))
    return cells


def test_differences_are_measured_by_the_papers_spread(tmp_path: Path) -> None:
    # The paper's GAE on Asterix: Overall 6.6 ± 0.1, Last 27.4 ± 0.6, over 50 seeds.
    for seed, score in enumerate((7.0, 8.0)):
        write_run(tmp_path, "MinAtar/Asterix-v1", "gae", seed=seed, episodes=[(score, 100)], **FULL)
    write_run(tmp_path, "MinAtar/Asterix-v1", "duel", episodes=[(1.0, 100)], **FULL)  # the paper prints none
    write_run(tmp_path, "MinAtar/Breakout-v1", "dae", episodes=[(17.2, 100)], minibatches="segments", **FULL)
    table = agreement_table(cells_of(tmp_path), "minatar", "baseline")
    assert table is not None
    shown = [[entry.text for entry in row] for row in table.rows]
    # (7.5 − 6.6) / (0.1 √50 √(1/2 + 1/50)) = 0.9 / 0.5099, and −19.9 / 3.0594 for Last.
    # One seed of DAE on Breakout, Last 844.7 ± 152.3: −827.5 / (152.3 √50 √(1 + 1/50)).
    assert table.columns[1:] == [("Overall", "GAE"), ("Overall", "DAE"), ("Last", "GAE"), ("Last", "DAE")]
    assert shown == [["Asterix", "+1.8", "–", "-6.5", "–"], ["Breakout", "–", "+0.0", "–", "-0.8*"]]
    assert "even a score of 0 would be within" in table.notes[-1]
    assert [entry.strong for entry in table.rows[0][1:]] == [False, False, True, False]
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert len(rows) == 4
    assert float(rows[0]["standard_errors"]) == pytest.approx(1.7650, abs=1e-4)


@pytest.mark.parametrize(
    ("env", "changed"),
    [
        ("MinAtar/Asterix-v1", {"frames": 2_000_000}),
        ("MinAtar/Asterix-v1", {**FULL, "actors": 128}),
        ("MinAtar/Asterix-v1", {**FULL, "gamma": 0.9}),
        ("MinAtar/Asterix-v0", FULL),  # all six actions
        ("CartPole-v1", FULL),
    ],
    ids=str,
)
def test_runs_that_are_not_the_papers_are_not_compared_with_it(
    tmp_path: Path, env: str, changed: dict[str, object]
) -> None:
    write_run(tmp_path, env, "gae", **changed)
    cells = cells_of(tmp_path)
    (domain,) = cells.values("domain")
    assert agreement_table(cells, domain, "baseline") is None


def test_an_error_that_was_printed_as_none_tells_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, "MinAtar/Breakout-v1", "gae", "wide", **FULL)  # Overall 12.0 ± 0.0
    table = agreement_table(cells_of(tmp_path), "minatar", "wide")
    assert table is not None
    assert [entry.text for entry in table.rows[0]] == ["Breakout", "–", "-4.2"]


@pytest.mark.parametrize(("method", "compared"), [("gae", True), ("dae", False)])
def test_layers_that_only_the_authors_gae_had(tmp_path: Path, method: str, compared: bool) -> None:
    write_run(tmp_path, "MinAtar/Asterix-v1", method, extra_mlp=True, **FULL)
    assert (agreement_table(cells_of(tmp_path), "minatar", "baseline") is not None) == compared
