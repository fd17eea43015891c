"""A whole report: every number in it is worked by hand here, and what is left out is named."""

import csv
import json
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from PIL import Image

from dae.cli import main
from dae.experiments.config import parse
from dae.pictures import new_figure
from dae.report import analyse, departures, read_results, write_report
from dae.report.contents import contents
from dae.report.departures import behind_the_numbers
from dae.report.figures import curve_panel
from dae.report.page import render_page
from dae.report.provenance import short_command
from dae.report.svg import inline_svg
from dae.runs import find_runs
from tests.browser import CHROMIUM, Tab, chromium
from tests.report.folders import MADE_WITH, write_run

EVIL = '<img src="https://example.org/x.png" onerror=alert(1)>$x-v0'


def write_runs(root: Path) -> None:
    """GAE against DAE on Asterix and Breakout; the ablation on Asterix; a world of its own; and what must not count."""
    # Means of the runs are 2, 4, 6 (mean 4, s = 2, s/√3 = 1.1547) for GAE and 10, 14, 18 (14 ± 2.3094) for DAE.
    for seed in range(3):
        rise = 2 * seed
        write_run(root, "MinAtar/Asterix-v1", "gae", seed=seed, episodes=[(0.0 + rise, 100), (4.0 + rise, 1000)])
        write_run(
            root, "MinAtar/Asterix-v1", "dae", seed=seed, episodes=[(8.0 + 2 * rise, 100), (12.0 + 2 * rise, 1000)]
        )
        write_run(root, "MinAtar/Breakout-v1", "gae", seed=seed, episodes=[(1.0, 100), (5.0 + seed, 1000)])
    for seed in range(2):
        write_run(root, "MinAtar/Breakout-v1", "dae", seed=seed, episodes=[(1.0, 100), (5.0 + seed, 1000)])
        write_run(
            root,
            "MinAtar/Asterix-v1",
            "indirect",
            seed=seed,
            episodes=[(1.0, 100), (2.0 + seed, 1000)],
            gamma=0.9,
            kl_coef=0.5,
        )
    write_run(root, EVIL, "dae", seed=0, episodes=[(20.0, 100), (40.0, 900)], made_with=MADE_WITH | {"machine": "<b>"})
    write_run(root / "long", "MinAtar/Asterix-v1", "dae", seed=0, frames=4000)
    write_run(root, "MinAtar/Asterix-v1", "dae", seed=7, state="running")
    (write_run(root, "MinAtar/Asterix-v1", "dae", seed=8) / "monitor.csv").unlink()
    write_run(root, "MinAtar/Asterix-v1", "dae", seed=9, episodes=[])
    shutil.copytree(root / "MinAtar-Asterix-v1" / "gae-baseline" / "seed-1", root / "copy")
    (root / "foreign").mkdir()
    (root / "foreign" / "config.json").write_text('{"name": "something else"}')


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    write_runs(place / "runs")
    write_report(analyse(read_results(find_runs([place / "runs"]))), [Path("runs")], place / "out")
    return place / "out"


def test_the_tables_hold_the_scores_beside_the_papers(report: Path) -> None:
    table = (report / "tables" / "scores-minatar-baseline.md").read_text()
    asterix = next(line for line in table.splitlines() if "| Asterix" in line)
    # Two episodes a run: Last is Overall.
    ours = "4.0 ± 1.2 | 6.6 ± 0.1 | **14.0 ± 2.3** | 10.5 ± 0.1 | 1.8 ± 0.2"
    assert (
        asterix
        == f"| Asterix | {ours} | {ours.replace('6.6 ± 0.1', '27.4 ± 0.6').replace('10.5 ± 0.1', '40.7 ± 1.0')} "
        + ("| 3 / 3 / 2 | 1K |")
    )
    assert "Runs with other settings have a table of their own: Asterix (DAE)." in table
    others = (report / "tables" / "variants-minatar-baseline.md").read_text()
    assert [line.split(" |")[0] for line in others.splitlines() if "frames=" in line] == [
        "| Asterix, DAE: frames=1K",
        "| Asterix, DAE: frames=4K",
    ]
    assert "In the paper and not here: Freeway, Seaquest and SpaceInvaders." in table
    latex = (report / "tables" / "scores-minatar-baseline.tex").read_text()
    assert r"Asterix & 4.0 $\pm$ 1.2 & 6.6 $\pm$ 0.1 & \textbf{14.0 $\pm$ 2.3} & 10.5 $\pm$ 0.1" in latex
    with (report / "tables" / "scores-minatar-baseline.csv").open() as file:
        rows = {(r["env"], r["method"], r["metric"]): r for r in csv.DictReader(file)}
    row = rows["MinAtar/Asterix-v1", "dae", "last"]
    assert (row["mean"], row["seeds"], row["frames"], row["paper_mean"]) == ("14.0", "3", "1000", "40.7")
    assert float(row["standard_error"]) == pytest.approx(4 / 3**0.5)


def test_the_wins_are_counted_and_the_papers_stand_beside_them(report: Path) -> None:
    lines = (report / "tables" / "wins-gae-dae.md").read_text().splitlines()
    rows = [[word.strip() for word in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    # Asterix: 4 ± 1.15 against 14 ± 2.31, DAE's. Breakout: 3.5 ± 0.29 against 3.25 ± 0.25, similar.
    assert rows[2] == ["baseline", "GAE", "0", "0", "0", "0", "0", "0"]
    assert rows[3] == ["", "DAE", "1", "5", "5", "1", "5", "5"]
    assert rows[4] == ["", "Similar", "1", "0", "0", "1", "0", "0"]
    assert any("not run alike on MinAtar/Breakout-v1: 3 seeds against 2" in line for line in lines)


def test_robust_statistics(report: Path) -> None:
    summary = json.loads((report / "summary.json").read_text())
    (improvement,) = [row for row in summary["tables"]["improvement-minatar"] if row["over"] == "gae"]
    # Asterix: all 9 pairs. Breakout: {3, 3½} against {3, 3½, 4}: ½ + 0 + 0 + 1 + ½ + 0 of 6, a third.
    assert improvement["probability"] == pytest.approx((1 + 1 / 3) / 2)
    rows = {(row["method"], row["environments"]): row for row in summary["tables"]["iqm-minatar"]}
    # GAE's scale: Asterix 2 to 6, Breakout 1 to 6; DAE's seeds on both are 0 and 1: last 10, 14; 3, 3½.
    # Normalised 2, 3, 0.4, 0.5; the middle two: 0.5 and 2.
    assert rows["dae", 2]["iqm"] == pytest.approx((0.5 + 2) / 2)
    assert rows["dae", 2]["seeds"] == 2


def test_departures_and_left_out_are_told(report: Path) -> None:
    summary = json.loads((report / "summary.json").read_text())
    assert summary["departures"] == [
        "MinAtar: 1K of 10M frames, 2 to 3 of 50 seeds, 2 of 5 environments, discount factor 0.9 "
        "(the paper: 0.99), KL penalty of weight 0.5 in place of clipping"
    ]
    kinds = [left["kind"] for left in summary["left_out"]]
    assert kinds == ["unfinished", "torn", "foreign", "duplicate", "without a score"]
    page = (report / "index.html").read_text()
    assert summary["departures"][0] in page
    for left in summary["left_out"]:
        assert left["path"] in page
    assert "left out: 1 unfinished, 1 torn, 1 foreign, 1 duplicate, 1 without a score" in page


def test_what_is_behind_the_papers_numbers_is_told_unless_the_runs_have_it_too(tmp_path: Path, report: Path) -> None:
    page = (report / "index.html").read_text()
    assert "Known differences behind the paper&#39;s numbers" in page
    assert "GAE&#39;s networks had 64-64 layers" in page
    assert "minibatches were whole segments" in page
    assert "Seaquest was that of MinAtar 1.0.10" not in page, "it was not run"
    as_the_authors: dict[str, Any] = {"bootstrap_truncations": False, "minatar_version": "1.0.10"}
    segments = {"minibatches": "segments", "drop_last": True}
    write_run(tmp_path / "a", "MinAtar/Seaquest-v1", "dae")
    write_run(tmp_path / "b", "MinAtar/Seaquest-v1", "dae", **as_the_authors, **segments)
    write_run(tmp_path / "b", "MinAtar/Seaquest-v1", "gae", **as_the_authors, extra_mlp=True)
    write_run(tmp_path / "c", "CartPole-v1", "dae")
    told = {}
    for name in "abc":
        analysis = analyse(read_results(find_runs([tmp_path / name])))
        (domain,) = analysis.cells.values("domain")
        told[name] = behind_the_numbers(analysis.cells, domain)
    assert [text.split()[0] for text in told["a"]] == ["minibatches", "Seaquest"]
    assert told["b"] == told["c"] == []
    banner = analyse(read_results(find_runs([tmp_path / "b"]))).departures
    assert "without bootstrap at time limits" in banner[0]
    assert "the rules of MinAtar 1.0.10 (default: 1.0.15)" in banner[0]
    assert "with 64-64 layers behind the trunk" in banner[0]
    assert "minibatches of whole segments" in banner[0]


# Each setting that is not about the size or the name of a cell, and a value that is not the paper's.
OTHER: dict[str, Any] = {
    "steps": 64, "batch_size": 128, "epochs": 3, "learning_rate": 0.001, "clip_range": 0.3, "anneal": False,
    "gamma": 0.9, "gae_lambda": 0.5, "ent_coef": 0.5, "critic_coef": 2.5, "max_grad_norm": 0.25, "normalize": False,
    "correction": 0.5, "row_length": 16, "minibatches": "segments", "drop_last": True, "kl_coef": 0.5,
    "bootstrap_truncations": False, "separate_networks": True, "extra_mlp": True, "atari_trunk": "code",
    "minatar_version": "1.0.10", "implementation": "sb3", "finishing": False,
}  # fmt: skip


def test_the_banner_tells_settings_in_words(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "MinAtar/Asterix-v1", "dae")
    config = json.loads((folder / "config.json").read_text())
    for name, value in OTHER.items():
        assert config["settings"][name] != value
        told = json.dumps(config | {"settings": config["settings"] | {name: value}})
        (folder / "config.json").write_text(told)
        (line,) = analyse(read_results(find_runs([tmp_path]))).departures
        said = line.split("environments, ")[1]
        assert not re.search(r"_|True|False|None", said), said
        assert isinstance(value, bool | str) or str(value) in said, said
    assert departures._in_words("a_new_setting", True, False) == "a_new_setting True (the paper: False)"
    assert departures._in_words("max_grad_norm", None, 0.5) == "without gradient clipping"
    assert departures._in_words("max_grad_norm", 0.25, 0.5) == "gradients clipped at norm 0.25 (the paper: 0.5)"


def test_an_error_that_is_small_is_not_shown_as_none(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / "runs", "CartPole-v1", "dae", seed=seed, episodes=[(0.5 + seed / 1000, 100)])
        write_run(tmp_path / "runs", "CartPole-v1", "gae", seed=seed, episodes=[(0.1, 100)])
    page = write_report(analyse(read_results(find_runs([tmp_path / "runs"]))), [Path("runs")], tmp_path / "out")
    text = page.read_text()
    assert "0.5010 ± 0.0006</a>" in text
    assert "0.1000 ± 0</a>" in text, "the mean of three times 0.1 is not 0.1 in floats"
    assert "mean ± standard error over 3 seeds, 1K frames" in text


def test_curves_against_the_frames_of_completed_episodes(tmp_path: Path) -> None:
    for method in ("gae", "dae"):
        write_run(tmp_path / "runs", "MinAtar/Asterix-v1", method, episodes=[(1.0, 900), (5.0, 1000)], frames=100)
    words = ["report", str(tmp_path / "runs"), "--axis", "episodes", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "frames of completed episodes" in page
    assert "--axis episodes" in page


def test_a_curve_goes_through_the_parts_in_which_episodes_ended(tmp_path: Path) -> None:
    write_run(tmp_path, episodes=[(1.0, 255), (3.0, 755)], seed=0)
    write_run(tmp_path, episodes=[(2.0, 355), (4.0, 755)], seed=1)
    figure = curve_panel(analyse(read_results(find_runs([tmp_path]))).cells, "Breakout")
    (line,) = figure.axes[0].lines
    # A quarter of the frames has passed when the first seed has a score, but the second has none there.
    np.testing.assert_allclose(line.get_xydata(), [(355, 1.5), (755, 3.5)])
    assert line.get_marker() == "o"


def test_a_curve_of_one_point_shows_it_and_its_error_whole(tmp_path: Path) -> None:
    for seed, score in enumerate((2.0, 4.0)):
        write_run(tmp_path, episodes=[(score, 1000)], seed=seed)
    axes = curve_panel(analyse(read_results(find_runs([tmp_path]))).cells, "Freeway").axes[0]
    (line,) = axes.lines
    (bar,) = (c for c in axes.collections if isinstance(c, LineCollection))
    np.testing.assert_allclose(bar.get_segments(), [[(995, 2.0), (995, 4.0)]])
    assert not line.get_clip_on()
    assert not bar.get_clip_on()


def test_scores_of_runs_from_several_commits_are_named_or_all_of_them_are(tmp_path: Path) -> None:
    for method in ("dae", "gae"):
        first, _ = (write_run(tmp_path, "MinAtar/Asterix-v1", method, seed=seed) for seed in (0, 1))
        config = json.loads((first / "config.json").read_text())
        config["made_with"]["git_commit"] = "f" * 40
        (first / "config.json").write_text(json.dumps(config))
        assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
        table = (tmp_path / "out" / "tables" / "scores-minatar-baseline.md").read_text()
        assert "not all made with the same versions and commit; see below: all scores." in table
    write_run(tmp_path, "MinAtar/Breakout-v1", "dae")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    table = (tmp_path / "out" / "tables" / "scores-minatar-baseline.md").read_text()
    assert "see below: Asterix (GAE) and Asterix (DAE)." in table


def test_a_command_repeats_its_runs(report: Path) -> None:
    for cell in json.loads((report / "summary.json").read_text())["cells"]:
        loop = re.fullmatch(r"for seed in ([\d ]+); do (.*) --seed \$seed; done|(.*) --seed (\d+)", cell["command"])
        assert loop is not None
        seeds, command = (loop[1] or loop[4]).split(), loop[2] or loop[3]
        assert list(map(int, seeds)) == cell["seeds"]
        for seed, folder in zip(seeds, cell["folders"], strict=True):
            config = parse([*shlex.split(command)[2:], "--seed", seed])
            stored = json.loads((Path(folder) / "config.json").read_text())["settings"]
            assert json.loads(json.dumps(config.to_json())) == stored


def test_a_run_that_was_extended_has_a_command_for_each_end_and_stands_alone(tmp_path: Path) -> None:
    for seed in (0, 1):
        folder = write_run(tmp_path, "MinAtar/Asterix-v1", "dae", seed=seed)
    config = json.loads((folder / "config.json").read_text())
    config["settings"] |= {"extended_from": [300], "frames": 1000}
    (folder / "config.json").write_text(json.dumps(config))
    (cell,) = analyse(read_results(find_runs([tmp_path]))).cells
    assert [len(cell.runs), *(len(variant.runs) for variant in cell.others)] == [1, 1]
    (extended,) = [variant for variant in (cell, *cell.others) if variant.settings.extended_from]
    assert re.findall(r"--frames (\d+)", short_command(extended)) == ["300", "1000"]


def test_the_page_is_the_same_whenever_it_is_rendered(tmp_path: Path) -> None:
    write_run(tmp_path, "MinAtar/Asterix-v1", "dae")
    analysis = analyse(read_results(find_runs([tmp_path])))
    sections = contents(analysis)
    drawn = {figure.name: "<svg/>" for section in sections for block in section.blocks for figure in block.figures}
    pages = [render_page(analysis, sections, drawn, "dae report", Path("report")) for _ in range(2)]
    assert pages[0] == pages[1]


def test_an_estimator_that_nobody_knows_has_a_name_and_a_colour(tmp_path: Path) -> None:
    """A run of a program with an estimator of its own, reported by a program without it."""
    write_run(tmp_path / "runs", "MinAtar/Asterix-v1", "gae", episodes=[(1.0, 100), (5.0, 1000)])
    folder = write_run(tmp_path / "runs", "MinAtar/Asterix-v1", "dae", episodes=[(1.0, 100), (7.0, 1000)])
    config = json.loads((folder / "config.json").read_text())
    config["settings"]["advantage"] = "</style>Mine"
    (folder / "config.json").write_text(json.dumps(config))
    analysis = analyse(read_results(find_runs([tmp_path / "runs"])))
    page = write_report(analysis, [Path("runs")], tmp_path / "out").read_text()
    assert page.count("</style>") == 1
    assert re.search(r"--method-1-style-mine: #[0-9a-f]{6};", page)
    assert page.count("var(--method-1-style-mine)") > 2
    assert "&lt;/style&gt;Mine over GAE, baseline" in page


class Elements(HTMLParser):
    """Everything on a page that could load something, its ids and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                self.links.append(value or "")


def test_the_page_needs_nothing_else(report: Path) -> None:
    text = (report / "index.html").read_text()
    elements = Elements()
    elements.feed(text)
    assert not elements.tags & {"script", "img", "iframe", "object", "embed", "b>"}
    assert all(link == "data:," or link.startswith("#") for link in elements.links)
    assert len(elements.ids) == len(set(elements.ids))
    assert {link[1:] for link in elements.links if link != "data:,"} <= set(elements.ids)
    assert not re.search(r"url\((?!#)|@import", text)
    assert "&lt;img src=" in text


def test_a_figure_on_the_page_keeps_its_words_and_has_ids_of_its_own() -> None:
    figure, (axes,) = new_figure(2, 2)
    axes.plot([0, 1], [0.123456, 0.2], color="#0072b2")
    axes.set_yticks([0.12345])
    text = inline_svg(figure, "name", 'a "description"', {"dae": "--method-0-dae"})
    assert ">0.12345</text>" in text
    assert not re.search(r'\bd="[^"]*\.\d\d\d', text)
    assert "var(--method-0-dae)" in text
    assert "#000000" not in text
    assert 'aria-label="a &quot;description&quot;"' in text
    assert set(re.findall(r"#(name-[^)\"]+)", text)) <= set(re.findall(r' id="([^"]+)"', text))
    assert not re.search(r' id="(?!name-)', text)


def _is_shaded(tab: Tab, path: Path, share: float) -> bool:
    """Scroll the first table by a share of what it can, and say whether its right edge is darker than its middle."""
    tab.evaluate(f"t = document.querySelector('.table'); t.scrollLeft = {share} * (t.scrollWidth - t.clientWidth)")
    place = "(r => [r.x + scrollX, r.y + scrollY, r.width, r.height])(t.getBoundingClientRect())"
    tab.picture(path, clip=tab.evaluate(place))
    with Image.open(path) as picture:
        columns = np.median(np.asarray(picture.convert("L"), float), axis=0)  # words are in the fewer rows
    return bool(columns[-8] < np.median(columns) - 5)


@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no /usr/bin/chromium; apt-get install chromium")
def test_the_page_in_a_browser(report: Path, tmp_path: Path) -> None:
    page = report / "index.html"
    with chromium(tmp_path / "profile") as tab:
        colours = set()
        for width, height, scheme in ((1280, 900, "light"), (390, 844, "dark")):
            tab.open(page, width, height, scheme)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width  # tables scroll in their own boxes
            assert tab.evaluate("document.querySelectorAll('figure svg').length") == 8
            assert tab.evaluate("[...document.querySelectorAll('figure')].every(f => f.clientHeight > 80)")
            assert tab.evaluate("document.querySelectorAll('figcaption').length") == 5
            colours.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
            more = tab.evaluate("(t => t.scrollWidth > t.clientWidth)(document.querySelector('.table'))")
            assert more == (width == 390)
            shaded = [_is_shaded(tab, tmp_path / "table.png", share) for share in (0, 0.5, 1)]
            assert shaded == [more, more, False], "a shadow at the right says that there is more"
        assert len(colours) == 2
        assert set(tab.requests) == {page.resolve().as_uri()}
        assert tab.complaints == []
        tab.evaluate("console.error('this one is seen')")
        assert len(tab.complaints) == 1


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs", "CartPole-v1", "dae")
    write_run(tmp_path / "runs", "CartPole-v1", "dae", seed=1, state="failed")
    assert main(["report"]) == 0
    assert capsys.readouterr().out == "1 run in 1 group of seeds; left out: 1 unfinished\nreport/index.html\n"
    page = (tmp_path / "report" / "index.html").read_text()
    assert "The paper has no numbers for these environments." in page
    assert "2.00</a>" in page  # one seed: no standard error, and certainly not ± 0
    assert "1 seed: no standard error; 1K frames" in page
    assert "error over" not in page.split('id="how"')[0]
    # The same runs give the same bytes.
    assert main(["report", "--out", "again"]) == 0
    files = sorted(path.relative_to("report") for path in Path("report").rglob("*") if path.is_file())
    assert {path.suffix for path in files} == {".html", ".json", ".md", ".tex", ".csv", ".png", ".svg", ".pdf"}
    assert files == sorted(path.relative_to("again") for path in Path("again").rglob("*") if path.is_file())
    assert [path for path in files if ("report" / path).read_bytes() != ("again" / path).read_bytes()] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["report", "empty"], "dae: no finished run among 0 folders; let `dae train` finish some"),
        (["report", "stopped"], "seed-0: stopped after 1,000 of 1,000 frames"),
        (["report", "none"], "dae: there is no folder none; name the folder that runs are kept in"),
    ],
)
def test_without_a_usable_run_nothing_is_written(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "stopped", state="stopped")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "report").exists()
