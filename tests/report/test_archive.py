"""Archived runs: small files, the same report, and nothing of the user's replaced."""

import json
from pathlib import Path

import numpy as np
import pytest

from dae.cli import main
from dae.report.reading import LeftOut, Result, read_result
from dae.runs import BINS, RunFolder
from tests.report.folders import MADE_WITH, write_run


def write_runs(root: Path) -> None:
    """Write runs with gaps in their curves, and one that has not finished."""
    rng = np.random.default_rng(0)
    for method in ("dae", "gae", "indirect"):
        for seed in range(2):
            frames = np.sort(rng.integers(1, 1100, 70)).tolist()
            write_run(root, method=method, seed=seed, episodes=[(float(rng.normal()), frame) for frame in frames])
    write_run(root, seed=9, state="stopped")


def test_the_report_of_an_archive_is_that_of_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}
    for place in ("own", "short"):
        (tmp_path / place).mkdir()
    write_runs(tmp_path / "own" / "runs")
    assert main(["archive", str(tmp_path / "own" / "runs"), "--out", str(tmp_path / "short" / "runs")]) == 0
    for place in ("own", "short"):
        monkeypatch.chdir(tmp_path / place)
        for axis in ("frames", "episodes"):
            assert main(["report", "--axis", axis, "--out", axis]) == 0
        files = (path for axis in ("frames", "episodes") for path in Path(axis).rglob("*.*"))
        made[place] = {path: path.read_bytes() for path in files}
    # The run that has not finished is named in the report of the runs, and is not in the archive.
    unlike = {path.name for path, content in made["own"].items() if made["short"][path] != content}
    assert unlike == {"index.html", "summary.json"}
    own, short = (json.loads(made[place][Path("frames/summary.json")]) for place in ("own", "short"))
    assert own.pop("left_out")
    assert not short.pop("left_out")
    assert own == short


def test_an_archived_run_is_small_and_says_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episodes = [(0.1 * i, 1 + i // 100) for i in range(60_000)]
    source = write_run(tmp_path / "runs", episodes=episodes)
    assert main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.endswith(f"1 run in {tmp_path / 'out'}; no folder left out\n")
    folder = tmp_path / "out" / source.relative_to(tmp_path / "runs")
    assert {path.name for path in folder.iterdir()} == {"config.json", "status.json", "scores.json"}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 16_000
    short, whole = read_result(RunFolder(folder)), read_result(RunFolder(source))
    assert isinstance(short, Result)
    assert isinstance(whole, Result)
    assert short.digest == whole.digest
    assert main(["runs", str(tmp_path / "out")]) == 0
    assert "finished" in capsys.readouterr().out
    files = sorted(folder.iterdir())
    for words in (["play"], ["train", "--resume"], ["train", "--frames", "20M", "--resume"]):  # there is no agent
        assert main([*words, str(folder)]) == 2
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert "is an archive of a run" in told
    assert sorted(folder.iterdir()) == files


def test_an_archive_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = write_run(Path("runs"), seed=0)
    for _ in range(2):  # the second time the archive lies among the runs
        assert main(["archive", ".", "--out", "archive"]) == 0
        assert [str(path.parent) for path in Path("archive").rglob("scores.json")] == [f"archive/{first}"]
    assert main(["archive", "archive", "--out", "archive"]) == 0, "of itself"
    config = json.loads((first / "config.json").read_text())
    config["settings"] |= {"frames": 2000, "extended_from": [1000]}
    (first / "config.json").write_text(json.dumps(config))
    write_run(Path("runs"), seed=1)
    assert main(["archive", ".", "--out", "archive"]) == 0
    copies = [read_result(RunFolder(path.parent)) for path in sorted(Path("archive").rglob("scores.json"))]
    assert [copy.settings.frames for copy in copies if isinstance(copy, Result)] == [2000, 1000]


@pytest.mark.parametrize("left", [("scores.json",), (".scores.json.x1.json",), ("scores.json", ".config.json.y.json")])
def test_an_interrupted_archive_is_completed(tmp_path: Path, left: tuple[str, ...]) -> None:
    source = write_run(tmp_path / "runs")
    folder = tmp_path / "out" / source.relative_to(tmp_path / "runs")
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).write_text("{")
    assert main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert isinstance(read_result(RunFolder(folder)), Result)


def test_nothing_of_others_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, changed in (("a", {}), ("b", {"gamma": 0.5}), ("c", {}), ("d", {"made_with": MADE_WITH | {"cpus": 9}})):
        write_run(tmp_path / name, seed=0, **changed)
    assert main(["archive", str(tmp_path / "a"), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    for words, rule in (
        (["b", "--out", "out"], "is the archive of another run than"),
        (["d", "--out", "out"], "is the archive of another run than"),
        (["c", "--out", "a"], "is not a file of an archive"),
        (["a", "c", "--out", "new"], "archive them one after the other"),
    ):
        paths = [word if word.startswith("-") else str(tmp_path / word) for word in words]
        assert main(["archive", *paths]) == 2
        told = capsys.readouterr().err
        assert rule in told
        assert len(told.splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_nothing_to_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs", state="stopped")
    assert main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    assert "no finished run among 1 folder; the first:" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"episodes": 3}, "its scores.json has 3 episodes, its status.json 2"),
        ({"episodes": 0}, "numbers that no run can have"),
        ({"overall": 1e200}, "numbers that no run can have"),
        ({"scores": [1.0] * (BINS - 1)}, "numbers that no run can have"),
        ({"scores": [None] * BINS}, "numbers that no run can have"),
        ({"seconds": [-1.0] * BINS}, "numbers that no run can have"),
        ({"seconds": [1.0] * BINS}, "numbers that no run can have"),  # also where no episode has ended
        ({"last": "high"}, "is damaged"),
    ],
)
def test_a_damaged_archive_does_not_count(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    write_run(tmp_path / "runs")
    assert main(["archive", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    (digest,) = (tmp_path / "out").rglob("scores.json")
    digest.write_text(json.dumps(json.loads(digest.read_text()) | change))
    left = read_result(RunFolder(digest.parent))
    assert isinstance(left, LeftOut)
    assert left.kind == "torn"
    assert reason in left.reason
