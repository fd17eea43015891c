"""The table of a sweep fits the terminal, and says what matters there."""

from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len

from dae.experiments.sweep.config import planned_runs
from dae.experiments.sweep.display import SweepDisplay, shortened
from dae.experiments.sweep.driver import Job
from dae.runs import Status
from tests.experiments.sweep.torture import read
from tests.terminal.test_progress import Clock, drawn

LONG = "MinAtar-SpaceInvaders-v1/indirect-baseline/seed-49"


def four_jobs(tmp_path: Path) -> list[Job]:
    """Four runs of 1000 frames: two are running, one has failed, one waits."""
    words = ["--envs", "MinAtar/SpaceInvaders-v1", "--advantages", "indirect", "gae", "--seeds", "2"]
    jobs = [Job(run) for run in planned_runs(read([*words, "--settings", "frames=1K", "--out", str(tmp_path)]))]
    jobs[0].state, jobs[0].frames, jobs[0].problem = "failed", 250, "environment 3 gave the reward nan"
    for job in jobs[1:3]:
        job.state, job.frames, job.status = "running", 500, Status(score=12.345, frames_per_second=50.0)
    return jobs


def shown(tmp_path: Path, clock: Clock) -> SweepDisplay:
    display = SweepDisplay(4000, 0)
    clock.now += 25
    display.update(four_jobs(tmp_path), 1250)
    return display


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize(
    ("width", "head", "row", "below"),
    [
        (
            60,
            "run state last-100",
            "…SpaceInvader…/gae-baseline/seed-0    running  50%     12.35",
            "0/4 finished  1 failed  2 running  1 waiting  50/s",
        ),
        (
            80,
            "run state last-100 frames/s",
            "MinAtar-SpaceInvaders-v1/gae-baseline/seed-0    running  50%     12.35        50",
            "0/4 finished  1 failed  2 running  1 waiting  50 frames/s  1,250/4,000 frames",
        ),
        (
            120,
            "run state last-100 frames/s time left",
            "MinAtar-SpaceInvaders-v1/gae-baseline/seed-0         running  50%     12.35        50       0:10",
            "0 of 4 runs finished  1 failed  2 running  1 waiting  50 frames/s  1,250/4,000 frames",
        ),
    ],
)
def test_the_table_fits_every_width(width: int, head: str, row: str, below: str, tmp_path: Path, clock: Clock) -> None:
    first, *rows, bar, last = drawn(shown(tmp_path, clock), width)
    assert first.split() == head.split()
    assert rows[0] == row
    assert [state for r in rows for state in r.split() if state in ("running", "failed")] == (
        ["running", "running", "failed"]
    )
    assert bar.endswith("31%  0:40 left"), "2000 frames at 50/s: those of the failed run are not waited for"
    assert len(bar) == width
    assert last == below
    assert max(cell_len(line) for line in (first, *rows, last)) <= width


def test_time_left_counts_down_between_two_iterations(tmp_path: Path, clock: Clock) -> None:
    display = shown(tmp_path, clock)
    clock.now += 10
    display.update(four_jobs(tmp_path), 1250)
    *_, bar, last = drawn(display, 80)
    assert bar.endswith("31%  0:30 left")
    assert "50 frames/s" in last


@pytest.mark.parametrize("height", [8, 24])
def test_the_table_is_not_higher_than_the_terminal(height: int, tmp_path: Path, clock: Clock) -> None:
    jobs = [Job(run, state="running") for run in planned_runs(read(["minatar", "--out", str(tmp_path)]))]
    display = SweepDisplay(10**10, 0)
    display.update(jobs, 0)
    lines = drawn(display, 80, height)
    assert len(lines) == height - 1
    assert lines[-3] == f"and {1000 - (height - 5)} more"
    assert lines[-2].endswith("0%  time left not known yet")


def test_names_keep_what_tells_runs_apart() -> None:
    for width in range(12, 60):
        assert len(shortened(LONG, width)) <= width
        assert shortened(LONG, width).endswith("seed-49")
    assert shortened(LONG, 44) == "…SpaceInvaders-v1/indirect-baseline/seed-49"
    assert shortened(LONG, 34) == "…SpaceI…/indirect-baseline/seed-49"
    assert shortened("CartPole-v1/dae-baseline/seed-0", 28) == "CartPol…/dae-baseline/seed-0"
    for narrow, wide in pairwise(range(12, 60)):
        assert len(shortened(LONG, narrow)) <= len(shortened(LONG, wide))


def test_what_is_being_done_about_a_signal_is_said(tmp_path: Path, clock: Clock) -> None:
    display = shown(tmp_path, clock)
    display.note("stopping: waiting for the runs")
    assert drawn(display, 80)[-1] == "stopping: waiting for the runs"
