"""The page in a browser: it shows the numbers of its data, follows mouse and keys, loads nothing and runs no name."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dae.explorer import Exploration, Images, csv_rows, render, to_json
from dae.explorer.credit import credit_of, decompose
from dae.explorer.page import ASSETS, script
from tests.browser import CHROMIUM, Tab, chromium
from tests.explorer.explorations import NAMES, PALETTE, episode, exploration, truth

in_a_browser = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
GAMMA = 0.99
LIVES = episode(120, seed=5, borders=(50,), cut=True)
LIVES = replace(LIVES, truths=[truth(LIVES, 20), truth(LIVES, 70, wrong=(1, 3))])
OTHER = replace(episode(30, seed=6), score=40.0)
WHOLE = exploration(LIVES, OTHER)
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028&amp;\"'=<!--\u202e"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Tab:
    browser.requests.clear()
    browser.complaints.clear()
    return browser


def show(tab: Tab, folder: Path, what: Exploration, *, width: int = 1200, scheme: str = "light", at: str = "") -> Path:
    """Open the page of an exploration, at an episode's step if `at` names one."""
    path = folder / "explore.html"
    path.write_text(render(what), encoding="utf-8")
    tab.open(path, width, 860, scheme, fragment=at)
    frame(tab)
    return path


def frame(tab: Tab) -> None:
    tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def go(tab: Tab, step: int) -> None:
    tab.evaluate(f"slider.value = {step}; slider.dispatchEvent(new Event('input'))")
    frame(tab)


def step_of(tab: Tab) -> int:
    frame(tab)
    return int(texts(tab, "#position")[0].split("/")[0])


def texts(tab: Tab, selector: str) -> list[str]:
    return list(tab.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"))


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "").replace("%", ""))


def close(shown: Any, exact: Any, *, half: float = 0.0051) -> None:
    np.testing.assert_allclose([number(text) for text in shown], exact, atol=half)


def rows_of(tab: Tab) -> list[dict[str, Any]]:
    """The waterfall as it is shown."""
    return list(
        tab.evaluate(
            "[...document.querySelectorAll('#waterfall tr')].map(r => ({kind: r.dataset.kind, step: r.dataset.step,"
            " adds: r.cells[2].textContent, sum: r.cells[3].textContent}))"
        )
    )


@in_a_browser
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_loads_without_requests_complaints_or_overflow(tab: Tab, tmp_path: Path, width: int, scheme: str) -> None:
    path = show(tab, tmp_path, WHOLE, width=width, scheme=scheme, at="#episode=2&step=70")
    tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    frame(tab)
    assert tab.requests == [path.as_uri()]
    assert tab.complaints == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    lightness = sum(tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"))
    assert (lightness > 384) == (scheme == "light")


@in_a_browser
def test_mouse_and_keys_move_through_the_episode(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=0")
    credit = credit_of(LIVES, GAMMA)
    assert credit.of_choice is not None
    worst = int(credit.of_choice.argmin())
    tab.click(f'#marks .mistake[data-step="{worst}"]')
    assert step_of(tab) == worst
    tab.press("ArrowRight")
    assert step_of(tab) == worst + 1
    tab.press("Home")
    assert step_of(tab) == 0
    marked = sorted({*np.argsort(credit.of_choice)[:8].tolist(), *np.argsort(-credit.of_choice)[:8].tolist()})
    tab.press("j")
    assert step_of(tab) == next(step for step in marked if step > 0)
    tab.press("End")
    assert step_of(tab) == 120  # the state after the last step has a picture
    tab.press("k")
    assert step_of(tab) == marked[-1]
    tab.click("#gains button")
    assert step_of(tab) == int(credit.of_choice.argmax())
    tab.evaluate("document.getElementById('slider').focus()")
    tab.click("#overview-canvas")
    assert abs(step_of(tab) - 57) < 5  # the middle, but for the scale at the left


@in_a_browser
def test_it_plays_when_asked_and_pauses(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE)
    assert step_of(tab) == 0  # never by itself
    tab.evaluate("speed.value = '60'; document.getElementById('play').click()")
    assert texts(tab, "#position") == ["0 / 30"]
    tab.evaluate(
        "new Promise(done => { const look = () => slider.value > 3 ? done() : requestAnimationFrame(look); look(); })"
    )
    assert texts(tab, "#spoken") == [""]  # a screen reader is left in peace
    tab.evaluate("document.getElementById('play').click()")
    paused = step_of(tab)
    assert paused > 3
    assert step_of(tab) == paused
    assert tab.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"
    tab.evaluate("new Promise(done => setTimeout(done, 450))")
    assert texts(tab, "#spoken")[0].startswith(f"Step {paused}: {NAMES[OTHER.actions[paused]]} was taken")


@in_a_browser
def test_the_numbers_are_those_of_the_data(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=0")
    credit = credit_of(LIVES, GAMMA)
    for step in (0, 20, 49, 50, 119):
        go(tab, step)
        close(texts(tab, "#actions tr td:nth-child(4)"), 100 * LIVES.probabilities[step], half=0.051)
        close(texts(tab, "#actions tr td:nth-child(6)"), LIVES.advantages[step])
        close(texts(tab, "#fact-value"), [LIVES.values[step]])
        close(texts(tab, "#fact-reward"), [LIVES.rewards[step]])
        close(texts(tab, "#fact-score"), [LIVES.scores[step]])
        close(texts(tab, "#fact-luck"), [credit.luck[step]])
        taken, best = NAMES[LIVES.actions[step]], NAMES[credit.best[step]]
        assert texts(tab, "#actions tr.taken th") == [taken]
        assert texts(tab, "#actions tr.best th") == [best]
        if taken != best:
            assert f"{taken} was taken; {best} is valued {credit.costs[step]:.2f} higher" in texts(tab, "#verdict")[0]
    assert texts(tab, "#fact-segment") == ["2 of 2"]
    assert credit.of_choice is not None
    mistakes = np.argsort(credit.of_choice)
    others = [step for step in np.argsort(-credit.costs) if step not in mistakes[: len(texts(tab, "#mistakes button"))]]
    worst, doubt = mistakes[0], others[0]
    assert texts(tab, "#mistakes button")[0] == (
        f"step {worst}: {NAMES[LIVES.actions[worst]]} instead of {NAMES[credit.best[worst]]} "
        f"cost {-credit.of_choice[worst]:.2f}"
    )
    assert texts(tab, "#doubts button")[0] == (
        f"step {doubt}: {NAMES[credit.best[doubt]]} is valued {credit.costs[doubt]:.2f} above "
        f"{NAMES[LIVES.actions[doubt]]}"
    )
    most = int(credit.of_choice.argmax())
    assert texts(tab, "#gains button")[0] == (
        f"step {most}: {NAMES[LIVES.actions[most]]} gained {credit.of_choice[most]:.2f}"
    )


@in_a_browser
def test_the_waterfall_adds_up_to_the_return(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=0")
    for step, origin, segment in ((10, 0, 0), (60, 50, 1), (90, 90, 1)):
        tab.evaluate(f"document.getElementById('{'from-here' if origin == step else 'from-start'}').click()")
        go(tab, step)
        parts = decompose(LIVES, GAMMA, LIVES.segments[segment], origin)
        first, *middle, last = rows_of(tab)
        close([first["adds"], last["adds"], middle[-1]["sum"]], [parts.value, parts.total, parts.total])
        assert number(first["adds"]) + sum(number(row["adds"]) for row in middle) == pytest.approx(
            parts.total, abs=0.005 * (len(middle) + 1)
        )
        for kind, amounts in (("choice", parts.choices), ("luck", parts.luck)):
            shown = [row for row in middle if row["kind"] == kind]
            steps = sorted(origin + np.argsort(-abs(amounts))[:6])
            assert [int(row["step"]) for row in shown] == steps
            close([row["adds"] for row in shown], amounts[np.array(steps) - origin])
            (others,) = [row for row in middle if row["kind"] == f"other {kind}"]
            close([others["adds"]], [amounts.sum() - amounts[np.array(steps) - origin].sum()])
    note = texts(tab, "#waterfall-note")[0]
    assert "The segment was cut" in note
    assert f"{GAMMA**30 * 1.5:.2f}" in note
    tab.evaluate("document.querySelectorAll('#waterfall tr button')[1].click()")
    assert step_of(tab) == int(rows_of(tab)[0]["step"])  # the return from there on, as the choice says


@in_a_browser
def test_the_filter_keeps_the_decisions_with_high_stakes(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=0")
    tab.evaluate("stakes.value = 900; stakes.dispatchEvent(new Event('input'))")
    frame(tab)
    credit = credit_of(LIVES, GAMMA)
    least = np.sort(credit.stakes)[108]
    kept = np.flatnonzero(credit.stakes >= least)
    assert texts(tab, "#stakes-text") == [f"at least {least:.2f}: {kept.size} of 120 steps"]
    listed = tab.evaluate("[...document.querySelectorAll('#gains button, #mistakes button')].map(b => +b.dataset.step)")
    assert listed
    assert {*listed} <= {*kept.tolist()}
    visited = []
    for _ in kept:
        tab.press("n")
        visited.append(step_of(tab))
    assert sorted({*visited, 0}) == sorted({*kept.tolist(), 0})
    tab.evaluate("document.getElementById('previous-kept').click()")
    assert step_of(tab) == kept[-2]


@in_a_browser
def test_what_if_shows_the_simulation_beside_the_estimate(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=0")
    assert "10 of 12 actions" in texts(tab, "#truths-text")[0]
    assert len(texts(tab, "#marks .checked")) == 2
    assert "not checked" in texts(tab, "#truth-text")[0]
    tab.click('#truths button[data-step="70"]')
    assert step_of(tab) == 70
    checked = LIVES.truths[1]
    close(texts(tab, "#truth td:nth-child(3)"), LIVES.advantages[70])
    shown = [text.split(" ± ") for text in texts(tab, "#truth td:nth-child(4)")]
    close([mean for mean, _ in shown], checked.advantages)
    close([error for _, error in shown], checked.errors)
    close([text.split(" ± ")[0] for text in texts(tab, "#truth td:nth-child(5)")], checked.q)
    assert texts(tab, "#truth td:nth-child(6)") == ["yes", "no", "yes", "no", "yes", "yes"]
    assert texts(tab, "#truth-text")[0].endswith("more than 2 standard errors for left, right.")
    go(tab, 20)
    assert texts(tab, "#truth-text")[0].endswith("within 2 standard errors for all actions.")


@in_a_browser
def test_episodes_are_listed_by_score(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE)
    assert texts(tab, "#episodes strong") == ["score 40", f"score {LIVES.score:g}"]
    assert texts(tab, "#episodes [aria-current] strong") == ["score 40"]
    assert tab.evaluate("document.getElementById('what-if').hidden")
    tab.evaluate("document.querySelectorAll('#episodes button')[1].click()")
    frame(tab)
    assert "Seed 5, 120 steps" in texts(tab, "#episode-text")[0]
    assert texts(tab, "#position") == ["0 / 120"]


@in_a_browser
def test_the_table_of_steps_turns_its_pages(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, WHOLE, at="#episode=2&step=60")
    tab.evaluate("document.getElementById('steps').open = true")
    frame(tab)
    credit = credit_of(LIVES, GAMMA)
    (cells,) = tab.evaluate(
        "[...document.querySelectorAll('#steps-body tr.current')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert cells[:2] == ["60", NAMES[LIVES.actions[60]]]
    discount = GAMMA**10
    choice, luck = credit.of_choice[60], credit.luck[60]
    close(
        cells[6:], [choice, discount * choice, luck, discount * luck, credit.costs[60], credit.stakes[60]], half=0.0051
    )
    tab.evaluate("document.getElementById('steps-next').click()")
    assert texts(tab, "#steps-body th")[-1] == "119"
    assert tab.evaluate("document.getElementById('steps-next').disabled")


@in_a_browser
def test_without_advantages_the_rest_works_and_says_so(tab: Tab, tmp_path: Path) -> None:
    what = exploration(replace(OTHER, advantages=None), source=None, label="GAE")
    show(tab, tmp_path, what, width=390)
    assert "not available" in texts(tab, "#source")[0]
    assert "less than expected" in texts(tab, "#mistakes button")[0]
    assert tab.evaluate("document.getElementById('filter').hidden")
    assert tab.evaluate("getComputedStyle(document.querySelector('#actions .advantage')).display") == "none"
    parts = decompose(what.episodes[0], GAMMA, OTHER.segments[0])
    rows = rows_of(tab)
    close([rows[0]["adds"], rows[-1]["adds"], rows[-2]["sum"]], [parts.value, parts.total, parts.total])
    assert tab.complaints == []


@in_a_browser
def test_a_look_ahead_is_called_one(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, exploration(OTHER, source="look-ahead", label="GAE"))
    assert "one-step look-ahead with the agent's value function" in texts(tab, "#source")[0]


@in_a_browser
def test_hostile_names_stay_text(tab: Tab, tmp_path: Path) -> None:
    names = [f"{HOSTILE}{place}" for place in range(5)] + ["x" * 500]
    what = exploration(
        replace(LIVES, seed=1), env=HOSTILE, run=HOSTILE, label=HOSTILE, command=HOSTILE, action_names=names
    )
    path = show(tab, tmp_path, what, width=390, at="#episode=1&step=20")
    assert "<img" not in path.read_text()
    assert tab.evaluate("document.images.length") == 0
    assert texts(tab, "#env") == [HOSTILE]
    assert texts(tab, "#actions th") == names
    assert tab.evaluate("document.title") == f"{HOSTILE}: credit explorer"
    assert tab.requests == [path.as_uri()]
    assert tab.complaints == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@in_a_browser
def test_saved_files_have_the_data(tab: Tab, tmp_path: Path) -> None:
    names = ['say "no", or', *NAMES[1:]]
    what = exploration(LIVES, action_names=names)
    show(tab, tmp_path, what)
    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=False)
    saved = {}
    for ending in ("json", "csv"):
        tab.evaluate(f"document.getElementById('save-{ending}').click()")
        target = tmp_path / f"MinAtar-Breakout-v1-5.{ending}"
        for _ in range(100):
            if target.exists():
                break
            tab.evaluate("new Promise(done => setTimeout(done, 20))")
        saved[ending] = target.read_bytes().decode()
    content, expected = json.loads(saved["json"]), to_json(what)
    for found, segment in zip(
        content["episodes"][0]["segments"], expected["episodes"][0]["segments"], strict=True
    ):  # sums of floats in another order
        assert found.pop("return") == pytest.approx(segment.pop("return"), rel=1e-12)
    assert content == expected
    rows = list(csv.reader(io.StringIO(saved["csv"], newline="")))
    for found, row in zip(rows, csv_rows(what), strict=True):
        assert [_value(cell) for cell in found] == [_value(str(cell)) for cell in row]


def _value(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell


@in_a_browser
def test_pictures_are_drawn(tab: Tab, tmp_path: Path) -> None:
    pixel = (  # of a copy: the browser complains of a canvas that is read again and again
        "(copy => (copy.drawImage(picture, 0, 0), [...copy.getImageData({x}, {y}, 1, 1).data.slice(0, 3)]))"
        "(new OffscreenCanvas(20, 20).getContext('2d', {{willReadFrequently: true}}))"
    )
    show(tab, tmp_path, WHOLE)
    cells = OTHER.picture.cells
    for step, x, y in ((0, 3, 4), (17, 5, 5), (30, 2, 8)):
        go(tab, step)
        colour = PALETTE[cells[step, y, x]]
        assert bytes(tab.evaluate(pixel.format(x=x, y=y))).hex() == colour[1:]
    width = tab.evaluate("picture.getBoundingClientRect().width")
    assert width % 10 == 0  # every cell has whole pixels
    images = []
    for colour in ((255, 0, 0), (0, 0, 255)):
        file = io.BytesIO()
        Image.new("RGB", (16, 12), colour).save(file, "webp", lossless=True)
        images.append(file.getvalue())
    pictures = Images("image/webp", (16, 12), images, np.arange(30, dtype=np.int32) % 2)
    show(tab, tmp_path, exploration(replace(OTHER, picture=pictures)))
    for step, colour in ((0, [255, 0, 0]), (7, [0, 0, 255])):
        go(tab, step)
        tab.evaluate("new Promise(done => setTimeout(done, 50))")
        assert tab.evaluate(pixel.format(x=8, y=6)) == colour
    assert tab.complaints == []


def test_a_page_of_2000_steps_is_small() -> None:
    assert len(render(exploration(episode(2000))).encode()) < 1_000_000


def test_the_modules_can_share_one_scope() -> None:
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script(), flags=re.MULTILINE)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert not re.search(r"^(import|export) ", script(), flags=re.MULTILINE)
    files = [path.name for path in ASSETS.iterdir() if path.name.endswith(".js")]
    assert all((ASSETS / name).read_text().splitlines()[0] in script() for name in files)  # none is forgotten


def test_nothing_moves_by_itself() -> None:
    assert not re.search(r"transition|animation|@keyframes|scroll-behavior", (ASSETS / "explorer.css").read_text())
