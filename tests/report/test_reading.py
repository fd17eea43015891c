"""Run folders as they come: whole, cut, doubled, and of others."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dae.errors import UserError
from dae.report.cells import differences, make_cells
from dae.report.reading import LeftOut, Result, read_result, read_results
from dae.runs import Digest, Episodes, RunFolder, find_runs, read_episodes
from tests.report.folders import write_run


def test_a_run_is_reduced_to_its_scores(tmp_path: Path) -> None:
    episodes = [(float(i), 10 * i + 1) for i in range(150)]
    run = read_result(RunFolder(write_run(tmp_path, episodes=episodes, frames=2000)))
    assert isinstance(run, Result)
    assert (run.overall, run.last, run.digest.episodes) == (74.5, 99.5, 150)
    settings = run.settings
    assert (settings.env, settings.advantage, settings.network, settings.seed, settings.frames) == (
        "MinAtar/Breakout-v1",
        "dae",
        "baseline",
        0,
        2000,
    )


def test_scores_are_binned_by_the_frame_in_which_an_episode_ended() -> None:
    frames = np.array([1, 10, 11, 1000, 1500])  # bins of 10 frames: 1 to 10 is the first, and what comes late the last
    scores = np.array([1.0, 2.0, 5.0, 7.0, 9.0])
    curve = Digest.of(Episodes(scores, frames, scores, frames), 1000).curve("frames")
    assert curve[[0, 1, 99]].tolist() == [1.5, 5.0, 8.0]
    assert np.isnan(curve[2:99]).all()
    seconds = Digest.of(Episodes(scores, frames, np.array([0.5, 1, 3, 4, 8]), frames), 1000).seconds
    assert (seconds[0], seconds[1], seconds[2], seconds[99]) == (1, 3, None, 8), "of the last episode in each"
    lengths = np.array([5, 10, 20, 960, 900])  # ended after 5, 15, 35, 995 and 1895 frames of completed episodes
    curve = Digest.of(Episodes(scores, lengths, scores, frames), 1000).curve("episodes")
    assert curve[[0, 1, 3, 99]].tolist() == [1.0, 2.0, 5.0, 8.0]
    curve = Digest.of(Episodes(scores, lengths, scores, frames), 4000, frames_per_step=4).curve("episodes")
    assert curve[[0, 1, 3, 99]].tolist() == [1.0, 2.0, 5.0, 8.0], "lengths are in steps of the agent"


def cut(folder: Path) -> None:
    text = (folder / "monitor.csv").read_text()
    (folder / "monitor.csv").write_text(text[:-3])


def lose_a_line(folder: Path) -> None:
    lines = (folder / "monitor.csv").read_text().splitlines(keepends=True)
    (folder / "monitor.csv").write_text("".join(lines[:-1]))


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def rewrite(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def set_rows(folder: Path, rows: list[str]) -> None:
    (folder / "monitor.csv").write_text("\n".join(["#{}", "r,l,t,frames", *rows, ""]))


SPOILED = {
    "no monitor": (lambda f: (f / "monitor.csv").unlink(), "torn", "monitor.csv is missing"),
    "empty monitor": (lambda f: (f / "monitor.csv").write_text(""), "torn", "ends within a line"),
    "torn header": (lambda f: (f / "monitor.csv").write_text('#{"t_start"'), "torn", "ends within a line"),
    "torn end": (cut, "torn", "ends within a line"),
    "a line short": (lose_a_line, "torn", "1 episode, its status.json 2"),
    "other columns": (
        lambda f: (f / "monitor.csv").write_text("#{}\nr,l,t\n1,2,3\n"),
        "torn",
        "its columns are 'r,l,t'",
    ),
    "binary": (lambda f: (f / "monitor.csv").write_bytes(b"#{}\nr,l,t,frames\n\xff\xfe\x00\n"), "torn", "is damaged"),
    "no config": (lambda f: (f / "config.json").unlink(), "torn", "no config.json"),
    "foreign config": (lambda f: (f / "config.json").write_text('{"a": 1}'), "foreign", "not the config of a run"),
    "newer": (lambda f: (f / "config.json").write_text('{"schema": 99}'), "foreign", "newer version"),
    "no status": (lambda f: (f / "status.json").unlink(), "unfinished", "interrupted"),
    "odd status": (lambda f: (f / "status.json").write_text("3"), "torn", "status.json cannot be read"),
    "status without frames": (
        lambda f: (f / "status.json").write_text('{"state": "finished", "frames": null}'),
        "torn",
        "status.json cannot be read",
    ),
    "deep status": (lambda f: (f / "status.json").write_text("[" * 100_000), "torn", "status.json cannot be read"),
    "deep config": (lambda f: (f / "config.json").write_text('{"a":' * 100_000), "foreign", "nested too deeply"),
    "status is a pipe": (lambda f: replace(f / "status.json", os.mkfifo), "torn", "not a regular file"),
    "monitor is a device": (
        lambda f: replace(f / "monitor.csv", lambda path: path.symlink_to("/dev/zero")),
        "torn",
        "it is a link",
    ),
    "config is a link": (
        lambda f: (f / "config.json").rename(f / "other") and (f / "config.json").symlink_to(f / "other"),
        "foreign",
        "it is a link",
    ),
    "giant monitor": (lambda f: os.truncate(f / "monitor.csv", 20 * 2**30), "torn", "more than"),
    "giant config": (lambda f: os.truncate(f / "config.json", 20 * 2**30), "foreign", "more than"),
    "surrogate": (
        lambda f: rewrite(f / "config.json", "MinAtar/Breakout-v1", "\\ud800"),
        "foreign",
        "not the config of a run",
    ),
    "reversed": (lambda f: set_rows(f, ["1.0,5,0.2,10", "2.0,5,0.1,5"]), "torn", "not in the order"),
    "negative": (lambda f: set_rows(f, ["1.0,-5,0.2,10", "2.0,5,0.1,15"]), "torn", "no episode can have"),
    "half a frame": (lambda f: set_rows(f, ["1.0,5,0.2,10.5", "2.0,5,0.1,15"]), "torn", "no episode can have"),
    "too large": (lambda f: set_rows(f, ["1e300,5,0.2,10", "2.0,5,0.1,15"]), "torn", "no episode can have"),
    "not finite": (lambda f: set_rows(f, ["nan,5,0.2,10", "2.0,5,0.1,15"]), "torn", "no episode can have"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_spoiled_folder_is_named_with_its_reason(case: str, tmp_path: Path) -> None:
    spoil, kind, reason = SPOILED[case]
    folder = write_run(tmp_path)
    spoil(folder)
    assert [found.path for found in find_runs([tmp_path])] == [folder]
    left = read_result(RunFolder(folder))
    assert isinstance(left, LeftOut)
    assert (left.path, left.kind) == (str(folder), kind)
    assert reason in left.reason


@pytest.mark.parametrize(("name", "value"), [("env", 3), ("seed", True), ("frames", 0), ("advantage", None)])
def test_settings_that_cannot_be_ordered_are_foreign(name: str, value: object, tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["settings"][name] = value
    (folder / "config.json").write_text(json.dumps(config))
    left = read_result(RunFolder(folder))
    assert isinstance(left, LeftOut)
    assert left.kind == "foreign"


def test_unfinished_and_empty_runs_have_no_score(tmp_path: Path) -> None:
    running = read_result(RunFolder(write_run(tmp_path, state="stopped")))
    empty = read_result(RunFolder(write_run(tmp_path, seed=1, episodes=[])))
    assert isinstance(running, LeftOut)
    assert isinstance(empty, LeftOut)
    assert (running.kind, running.reason) == ("unfinished", "stopped after 1,000 of 1,000 frames")
    assert (empty.kind, empty.reason) == ("without a score", "no episode has ended")


@pytest.mark.parametrize("rows", ["1.0,2,3.0,4\n1.0,2\n5.0,6,7.0,8\n", "1.0,2,3.0,4\n\n", "nan,2,3.0,4\n", "x,2,3,4\n"])
def test_damage_within_an_episode_file_is_an_error(rows: str, tmp_path: Path) -> None:
    (tmp_path / "monitor.csv").write_text(f"#{{}}\nr,l,t,frames\n{rows}")
    with pytest.raises(UserError, match="is damaged"):
        read_episodes(tmp_path / "monitor.csv")


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "monitor.csv").write_text("#{}\nframes,l,more,r,t\n128,7,0,1.5,0.25\n")
    episodes = read_episodes(tmp_path / "monitor.csv")
    assert (episodes.scores[0], episodes.lengths[0], episodes.seconds[0], episodes.frames[0]) == (1.5, 7, 0.25, 128)


def test_a_folder_given_twice_counts_once_and_a_missing_one_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    assert [found.path for found in find_runs([tmp_path, folder.parent])] == [folder]
    with pytest.raises(UserError, match="there is no folder"):
        find_runs([tmp_path / "none"])


def test_many_folders_are_read_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [RunFolder(write_run(tmp_path, seed=seed, episodes=[(float(seed), 5)])) for seed in range(3)]
    monkeypatch.setattr("dae.report.reading._WORTH_PROCESSES", 2)
    told: list[None] = []
    records = read_results(folders, lambda: told.append(None))
    assert [record.overall for record in records if isinstance(record, Result)] == [0.0, 1.0, 2.0]
    assert len(told) == 3


def test_cells_hold_what_differs_in_the_seed_alone(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / "a", seed=seed, frames=1000)
    other = RunFolder(write_run(tmp_path / "b", seed=2, frames=1000, device="cpu", torch_compile=True)).config
    content = json.loads(other.read_text())
    assert content["settings"]["preset"] == "paper"
    content["settings"]["preset"] = "quick"
    other.write_text(json.dumps(content))
    for seed in range(3):
        write_run(tmp_path / "c", seed=seed, frames=500, actors=64)
    write_run(tmp_path / "d", seed=0, frames=9000)
    shutil.copytree(tmp_path / "a" / "MinAtar-Breakout-v1", tmp_path / "e")
    records = read_results(find_runs([tmp_path]))
    cells, duplicates = make_cells(r for r in records if isinstance(r, Result))
    (cell,) = cells
    assert (cell.seeds, cell.frames) == ([0, 1, 2], 1000)  # as many seeds as c, and more frames
    assert [(other.size, differences(other.settings, cell.settings)) for other in cell.others] == [
        ("3 seeds × 500 frames", ["actors 64, not 1024", "frames 500, not 1K"]),
        ("1 seed × 9K frames", ["frames 9K, not 1K"]),
    ]
    assert [(Path(left.path).relative_to(tmp_path).parts[0], left.kind) for left in duplicates] == [
        ("e", "duplicate")
    ] * 2
    assert str(tmp_path / "a") in duplicates[0].reason


def test_a_score_may_be_large(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    set_rows(folder, ["1e100,5,0.2,10", "-18014398509481984.0,5,0.1,15"])
    result = read_result(RunFolder(folder))
    assert isinstance(result, Result)
    assert result.last == pytest.approx(5e99)


def test_what_may_not_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """As root there is nothing that may not be read; so the commands run without that privilege."""
    good, locked, hidden = (write_run(tmp_path / "runs", seed=seed) for seed in range(3))
    (locked / "lock").write_text("")
    (locked / "lock").chmod(0)
    (locked / "monitor.csv").chmod(0)
    hidden.chmod(0)
    try:
        for command in (["runs", "runs"], ["report", "runs"]):
            result = subprocess.run(
                [sys.executable, "-m", "dae", *command],
                cwd=tmp_path,
                preexec_fn=without_privileges,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert result.returncode == 0, result.stderr
            assert result.stderr == ""
            if command[0] == "runs":
                assert "seed-2" in result.stdout
        assert "1 run in 1 group of seeds; left out: 1 torn, 1 unreadable" in result.stdout
        page = (tmp_path / "report" / "index.html").read_text()
        assert "seed-1" in page
        assert "seed-2" in page
        assert "Permission denied" in page
    finally:
        hidden.chmod(0o755)
    assert isinstance(read_result(RunFolder(good)), Result)


def without_privileges() -> None:
    """Take from root the right to read what its owner may not."""
    system = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        system.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
