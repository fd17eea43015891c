"""Films on the page: the first of each cell, and nothing that is not one."""

import base64
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from dae.report import analyse, read_results, write_report
from dae.report.films import LARGEST, Film, find_films
from dae.runs import find_runs
from tests.browser import CHROMIUM, chromium
from tests.report.folders import write_run

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def gif(*colours: tuple[int, int, int], size: tuple[int, int] = (20, 10)) -> bytes:
    frames = [Image.new("RGB", size, colour) for colour in colours]
    written = io.BytesIO()
    frames[0].save(written, "gif", save_all=True, append_images=frames[1:], duration=80, loop=0)
    return written.getvalue()


def films_of(root: Path) -> tuple[list[Film], list[str]]:
    return find_films(analyse(read_results(find_runs([root]))).cells)


def still_of(film: Film) -> tuple[int, ...]:
    kind, _, content = film.still.partition(";base64,")
    assert kind == "data:image/png"
    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        shown = picture.convert("RGB").getpixel((3, 3))
    assert isinstance(shown, tuple)
    return shown


def test_the_first_film_of_each_cell_is_shown_that_of_training_before_those_of_play(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        folder = write_run(tmp_path, method="dae", seed=seed)
        played = write_run(tmp_path, method="gae", seed=seed) / "play"
        if seed:
            (folder / "episode.gif").write_bytes(gif(RED, GREEN if seed == 1 else BLUE))
            played.mkdir()
            (played / "episode-stochastic-seed-1000.gif").write_bytes(gif(BLUE))
            (played / "another.gif").write_bytes(gif(RED))
    films, notes = films_of(tmp_path)
    assert [film.cell.key.method for film in films] == ["gae", "dae"]
    assert [Path(film.path).relative_to(tmp_path / "MinAtar-Breakout-v1").as_posix() for film in films] == [
        "gae-baseline/seed-1/play/episode-stochastic-seed-1000.gif",
        "dae-baseline/seed-1/episode.gif",
    ]
    assert [still_of(film) for film in films] == [BLUE, GREEN], "of few frames the last stands for the film"
    assert films[1].moving == "data:image/gif;base64," + base64.b64encode(gif(RED, GREEN)).decode()
    assert notes == []


def of_many_pixels() -> bytes:
    content = bytearray(gif(RED))
    content[6:10] = b"\xff\xff\xff\xff"
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<script>alert(1)</script>", "it is not a GIF"),
        (b"GIF89a", "it cannot be decoded"),
        (gif(RED, GREEN)[:40], "it cannot be decoded"),
        (of_many_pixels(), "it has 65,535 × 65,535 pixels, more than 2,000 a side"),
        (gif(RED) + bytes(LARGEST), "it has 1,500,0"),
        (None, "it is a link"),
    ],
    ids=["not a gif", "header alone", "cut", "many pixels", "many bytes", "link"],
)
def test_a_file_that_is_no_film_is_named_and_the_next_is_shown(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    first, second = (write_run(tmp_path / "runs", seed=seed) / "episode.gif" for seed in (0, 1))
    if content is None:
        (tmp_path / "secret.gif").write_bytes(gif(RED))
        first.symlink_to(tmp_path / "secret.gif")
    else:
        first.write_bytes(content)
    second.write_bytes(gif(BLUE))
    films, notes = films_of(tmp_path / "runs")
    assert [film.path for film in films] == [str(second)]
    assert len(notes) == 1
    assert notes[0].startswith(f"{first} is not shown: {reason}")


def test_all_films_together_leave_the_page_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("gae", "dae"):
        (write_run(tmp_path, method=method) / "episode.gif").write_bytes(gif(RED))
    monkeypatch.setattr("dae.report.films._MOST_ON_PAGE", len(gif(RED)) + 1)
    films, (note,) = films_of(tmp_path)
    assert [film.cell.key.method for film in films] == ["gae"]
    assert note.endswith("dae-baseline/seed-0/episode.gif is not shown: the page has no room for more.")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = write_run(tmp_path / "runs")
    (folder / "episode.gif").write_bytes(gif(RED, GREEN))
    return write_report(analyse(read_results(find_runs([tmp_path / "runs"]))), [Path("runs")], tmp_path / "out")


def test_nothing_moves_on_the_page_before_it_is_asked_for(page: Path) -> None:
    text = page.read_text()
    (details,) = re.findall(r'<details class="film">.*?</details>', text, re.DOTALL)
    still, moving = re.findall(r"<img [^>]*>", details)
    assert 'src="data:image/png;base64,' in still
    assert details.index(still) < details.index("</summary>") < details.index(moving)
    assert text.count("data:image/gif") == 1
    again = write_report(analyse(read_results(find_runs([page.parent.parent / "runs"]))), [Path("runs")], page.parent)
    assert again.read_text() == text


@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no /usr/bin/chromium; apt-get install chromium")
def test_the_film_takes_the_place_of_its_picture_in_a_browser(page: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as tab:
        tab.open(page, 390, 844, "light")
        shown = "[...document.querySelectorAll('.film img')].map(i => i.checkVisibility({contentVisibilityAuto: true}))"
        assert tab.evaluate(shown) == [True, False]
        tab.evaluate("document.querySelector('.film').open = true")
        assert tab.evaluate(shown) == [False, True]
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert {url.split(",")[0] for url in tab.requests if not url.startswith("file:")} <= {
            "data:image/png;base64",
            "data:image/gif;base64",
        }
        assert tab.complaints == []


def test_a_report_with_films_needs_no_torch(tmp_path: Path) -> None:
    (write_run(tmp_path / "runs") / "episode.gif").write_bytes(gif(RED))
    code = (
        "import sys; from dae.cli import main; assert main(['report', 'runs']) == 0; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True)
