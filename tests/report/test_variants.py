"""Runs of one cell with several settings, side by side."""

import csv
from pathlib import Path

import pytest

from dae.report.variants_tables import variants_table
from tests.report.folders import write_run
from tests.report.test_agreement import FULL, cells_of


def test_runs_with_other_settings_stand_side_by_side(tmp_path: Path) -> None:
    # The paper's GAE on Asterix: Overall 6.6 ± 0.1, Last 27.4 ± 0.6, over 50 seeds.
    for seed, score in enumerate((7.0, 8.0)):
        write_run(tmp_path / "a", "MinAtar/Asterix-v1", "gae", seed=seed, episodes=[(score, 100)], **FULL)
    write_run(tmp_path / "b", "MinAtar/Asterix-v1", "gae", episodes=[(6.6, 100)], extra_mlp=True, **FULL)
    write_run(tmp_path / "c", "MinAtar/Asterix-v1", "gae", episodes=[(5.0, 100)], gamma=0.9, **FULL)
    write_run(tmp_path, "MinAtar/Breakout-v1", "gae", **FULL)  # nothing beside it
    table = variants_table(cells_of(tmp_path), "minatar", "baseline")
    assert table is not None
    assert [name for _, name in table.columns] == ["Runs", *["ours", "paper", "apart"] * 2, "Seeds", "Frames"]
    # (7.5 − 6.6) / (0.1 √50 √(1/2 + 1/50)); the paper's gamma is 0.99, so the last is no repetition of it.
    assert [[entry.text for entry in row] for row in table.rows] == [
        [
            "Asterix, GAE: extra_mlp=False, gamma=0.99",
            *("7.50 ± 0.50", "6.6 ± 0.1", "+1.8"),
            *("7.50 ± 0.50", "27.4 ± 0.6", "-6.5"),
            *("2", "10M"),
        ],
        [
            "Asterix, GAE: extra_mlp=True, gamma=0.99",
            *("6.60", "6.6 ± 0.1", "+0.0"),
            *("6.60", "27.4 ± 0.6", "-4.9"),
            *("1", "10M"),
        ],
        ["Asterix, GAE: extra_mlp=False, gamma=0.9", "5.00", "6.6 ± 0.1", "–", "5.00", "27.4 ± 0.6", "–", "1", "10M"],
    ]
    assert [entry.strong for entry in table.rows[0]] == [False] * 6 + [True] + [False] * 2
    rows = list(csv.DictReader(table.to_csv().splitlines()))
    assert [(row["settings"][:16], row["metric"], row["mean"]) for row in rows[2:4]] == [
        ("extra_mlp=True, ", "overall", "6.6"),
        ("extra_mlp=True, ", "last", "6.6"),
    ]
    assert float(rows[0]["standard_errors"]) == pytest.approx(1.7650, abs=1e-4)
    assert rows[5]["standard_errors"] == ""


def test_what_no_run_has_is_no_column(tmp_path: Path) -> None:
    for actors in (8, 16):
        write_run(tmp_path / str(actors), "CartPole-v1", "dae", actors=actors)
    cells = cells_of(tmp_path)
    (domain,) = cells.values("domain")
    table = variants_table(cells, domain, "baseline")
    assert table is not None
    assert [name for _, name in table.columns] == ["Runs", "ours", "ours", "Seeds", "Frames"]
    assert len(table.notes) == 1


def test_there_is_none_where_runs_differ_in_the_seed_alone(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path, "MinAtar/Asterix-v1", "gae", seed=seed)
    assert variants_table(cells_of(tmp_path), "minatar", "baseline") is None
