"""The Atari part of a report at its full width, 49 games and three networks, from runs with the paper's own scores."""

import re
from pathlib import Path

import pytest

from dae.envs import families
from dae.paper import paper_games, paper_scores
from dae.report.analysis import Analysis, analyse
from dae.report.comparing import paper_recount
from dae.report.contents import contents
from dae.report.departures import behind_the_numbers
from dae.report.page import render_page
from dae.report.reading import read_result
from dae.report.text import printed_text
from dae.runs import find_runs
from tests.report.folders import settings_of, write_files, write_run

GAMES, NETWORKS = paper_games("atari"), ("baseline", "wide", "deep")


def episodes(game: str, network: str, method: str, sign: int) -> str:
    """The rows of 200 episodes of 50K steps, 200K frames, whose scores lie one standard error from the paper's."""
    overall, last = (paper_scores()["atari", network, game, metric, method] for metric in ("overall", "last"))
    in_all, at_last = overall.mean + sign * overall.error, last.mean + sign * last.error
    scores = [2 * in_all - at_last] * 100 + [at_last] * 100
    return "".join(f"{score!r},50000,{i}.500,{200_000 * (i + 1)}\n" for i, score in enumerate(scores))


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("runs")
    for network in NETWORKS:
        for method in ("gae", "dae"):
            settings = settings_of("ALE/Alien-v5", method, network, 0)
            for game in GAMES:
                for seed, sign in enumerate((-1, 1)):
                    own = settings | {"env": f"ALE/{game}-v5", "seed": seed}
                    folder = root / game / f"{method}-{network}" / str(seed)
                    write_files(folder, own, episodes(game, network, method, sign), 200, "finished")
    return analyse([read_result(folder) for folder in find_runs([root])])


def test_runs_with_the_papers_settings_depart_in_their_seeds_alone(analysis: Analysis) -> None:
    assert analysis.departures == ["Atari: 2 of 10 seeds"]
    told = " ".join(behind_the_numbers(analysis.cells, "atari"))
    assert "whole segments" in told
    assert "bootstrapped with 0" in told
    assert "32-64-64" not in told, "the runs have it too"


def test_tables_have_all_games_by_name_with_the_papers_numbers(analysis: Analysis) -> None:
    (atari,) = [section for section in contents(analysis) if section.anchor == "atari"]
    tables = {block.title: block.tables for block in atari.blocks if block.title.startswith("Scores")}
    assert list(tables) == [f"Scores, {network} network" for network in NETWORKS]
    for network, found in zip(NETWORKS, tables.values(), strict=True):
        for metric, table in zip(("overall", "last"), found, strict=True):
            assert "over 2 seeds, 40M frames" in table.caption
            assert [row[0].text for row in table.rows] == list(GAMES)
            for game, (_, gae, paper_gae, dae, paper_dae) in zip(GAMES, table.rows, strict=True):
                for method, ours, printed in (("gae", gae, paper_gae), ("dae", dae, paper_dae)):
                    score = paper_scores()["atari", network, game, metric, method]
                    assert printed.text == printed_text(score)
                    assert float(ours.text.split(" ± ")[0]) == pytest.approx(score.mean, abs=0.51)


def test_wins_are_those_of_the_papers_scores_by_the_same_rule(analysis: Analysis) -> None:
    """Two seeds, one standard error apart from their mean on either side, have that mean and that standard error."""
    assert [comparison.network for comparison in analysis.compared] == list(NETWORKS)
    for comparison in analysis.compared:
        for metric in ("overall", "last"):
            wins = comparison.wins(metric)
            assert wins.environments == 49
            assert wins == paper_recount("atari", comparison.network, metric)


def test_curves_end_at_the_frames_of_the_game(analysis: Analysis) -> None:
    """An episode of 200K frames ends every 200K: two in each hundredth of 40M, on either axis."""
    cell = analysis.cells.get("atari", "ALE/Breakout-v5", "deep", "dae")
    assert cell is not None
    (family,) = (family for family in families() if family.name == "atari")
    assert cell.frames == 40_000_000 == family.protocol.frames  # type: ignore[union-attr]
    for axis in ("frames", "episodes"):
        run = read_result(next(f for f in find_runs([Path(cell.runs[0].path)])), axis)  # type: ignore[arg-type]
        assert len(set(run.curve[:50])) == len(set(run.curve[50:])) == 1  # type: ignore[union-attr]
        assert run.curve[49] != run.curve[50]  # type: ignore[union-attr]


def test_a_page_of_this_length_has_links_within_a_domain_and_folds_what_is_behind_it(analysis: Analysis) -> None:
    sections = contents(analysis)
    drawn = {figure.name: "<svg/>" for section in sections for block in section.blocks for figure in block.figures}
    page = render_page(analysis, sections, drawn, "dae report", Path("report"))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    for title in ("scores-wide-network", "learning-curves-deep-network", "normalised-mean-curves", "robust-statistics"):
        assert f'href="#atari-{title}"' in page
    assert page.count('class="table long"') == 9, "two of scores and one of agreement for each network"
    assert len(re.findall(r'class="figures[^"]* many"', page)) == 3
    assert page.count("<summary>98 groups of seeds</summary>") == 3


def test_the_channels_of_the_papers_figure_are_a_departure(tmp_path: Path) -> None:
    for method in ("gae", "dae"):
        write_run(tmp_path, "ALE/Pong-v5", method, atari_trunk="paper", frames=40_000_000)
    found = analyse([read_result(folder) for folder in find_runs([tmp_path])])
    assert found.departures == ["Atari: 1 of 10 seeds, 1 of 49 environments, the trunk of the paper's figure"]
    assert any("32-64-64" in text for text in behind_the_numbers(found.cells, "atari"))
