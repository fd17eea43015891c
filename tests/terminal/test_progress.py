"""What is shown of long work, on terminals of any width."""

import io

import pytest
from rich.console import Console, RenderableType

from dae.terminal.progress import Pace, Part, WorkProgress, compact, fitted, format_duration, percent

NEWS: list[Part] = [("last-100 score 12.34", "score 12.34"), ("12,345 episodes", "12.3K episodes")]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def drawn(content: RenderableType, width: int, height: int = 24) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, height=height).print(content)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def of_a_run(clock: Clock) -> WorkProgress:
    pace = Pace(0)
    clock.now += 2000
    pace.mark(4_567_890)
    progress = WorkProgress(10_000_000, 0, "frames")
    progress.update(4_567_890, "learning", NEWS, pace, 0.476)
    return progress


@pytest.mark.parametrize(
    ("width", "below"),
    [
        (40, "learning    47%  4.5M/10M frames"),
        (60, "learning    47%  4.5M/10M frames  2,284/s  score 12.34"),
        (80, "learning    47%  4.5M/10M frames  2,284 frames/s  score 12.34  12,345 episodes"),
        (
            120,
            "learning    47%  4,567,890/10,000,000 frames  2,284 frames/s  last-100 score 12.34  12,345 episodes",
        ),
    ],
)
def test_two_lines_fit_every_width(width: int, below: str, clock: Clock) -> None:
    bar, line = drawn(of_a_run(clock), width)
    assert line == below
    assert bar.endswith("  45%  39:38 left")
    assert len(bar) == width
    assert bar.count("━") + bar.count("╸") == pytest.approx(0.457 * (width - len("   45%  39:38 left")), abs=1)


def test_a_speed_is_that_of_whole_rounds_and_unknown_before_the_first(clock: Clock) -> None:
    pace, progress = Pace(100), WorkProgress(1100, 100, "frames")
    clock.now += 1
    progress.update(200, "collecting", NEWS, pace, 1.0)
    assert (pace.rate, pace.seconds_left(1100)) == (0, None)
    bar, line = drawn(progress, 80)
    assert bar.endswith("18%  time left not known yet")
    assert "first iteration" in line
    assert "/s" not in line
    clock.now += 9
    pace.mark(200)
    clock.now += 1
    progress.update(300, "collecting", NEWS, pace, 1.0)  # in a tenth of the time, which an update will follow
    assert pace.rate == 10
    assert pace.seconds_left(1100) == 89
    assert "10 frames/s" in drawn(progress, 80)[1]
    clock.now += 1000
    assert pace.seconds_left(1100) == 0, "what takes longer than it should is about to end, not in the past"


def test_a_long_phase_gets_lines_without_a_terminal(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    pace, progress = Pace(0), WorkProgress(1000, 0, "frames")
    for done in range(1, 46):  # an update of 45 s
        clock.now += 1
        progress.update(500, "learning", NEWS, pace, done / 45)
    assert capsys.readouterr().out.splitlines() == [
        "learning 44%: 500 of 1,000 frames, first iteration, last-100 score 12.34, 12,345 episodes",
        "learning 88%: 500 of 1,000 frames, first iteration, last-100 score 12.34, 12,345 episodes",
    ]


def test_threads_advance_together(clock: Clock) -> None:
    with WorkProgress(100, 50, "iterations") as progress:
        clock.now += 2
        progress.advance(10, "training", "dae, seeds 0 to 9: iteration 1")
    bar, line = drawn(progress, 80)
    assert bar.endswith("60%  0:08 left")
    assert line == "training  60/100 iterations  5 iterations/s  dae, seeds 0 to 9: iteration 1"


def test_only_what_is_done_is_all_of_it() -> None:
    assert [percent(share) for share in (0, 0.999, 1)] == ["0%", "99%", "100%"]
    assert [compact(n) for n in (0, 999, 1000, 99_999, 999_999, 10**7, 10**10)] == (
        ["0", "999", "1K", "99.9K", "999K", "10M", "10B"]
    )
    assert [format_duration(s) for s in (59.4, 3600, 172_800)] == ["0:59", "1:00:00", "2.0 days"]


def test_what_is_empty_takes_no_room() -> None:
    assert fitted([("a", "a"), ("", ""), ("b", "b")], 4) == "a  b"
    assert fitted([("much too long", "too long")], 3) == "too"
