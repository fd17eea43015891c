"""Wins by the paper's rule, and the paper's own numbers through it."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest

import dae
from dae.experiments.config import parse
from dae.paper import WINS, Score, paper_games, paper_scores
from dae.report.comparing import Wins, count_wins, paper_recount

NAN = float("nan")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Score(1.0, 0.1), Score(2.0, 0.1), Wins(second=1)),
        (Score(2.0, 0.1), Score(1.0, 0.1), Wins(first=1)),
        (Score(1.0, 0.6), Score(2.0, 0.5), Wins(similar=1)),
        (Score(6.6, 0.1), Score(6.8, 0.1), Wins(similar=1)),  # they touch in 6.7
        (Score(1.0, NAN), Score(2.0, 0.1), Wins(undecided=1)),
    ],
)
def test_similar_is_where_intervals_overlap(first: Score, second: Score, expected: Wins) -> None:
    assert count_wins([(first, second)]) == expected


def test_the_papers_scores_are_those_that_were_printed() -> None:
    assert len(paper_scores()) == (2 * 5 + 3 * 49) * 4
    assert paper_scores()["minatar", "baseline", "Breakout", "last", "dae"] == Score(844.7, 152.3)
    assert paper_scores()["minatar", "wide", "SpaceInvaders", "overall", "gae"] == Score(62.6, 0.4)
    assert {family: len(paper_games(family)) for family in ("minatar", "atari")} == {"minatar": 5, "atari": 49}


# Counted in the printed tables with exact decimals; similar includes intervals that touch.
@pytest.mark.parametrize(
    ("key", "counted"),
    [
        (("minatar", "baseline", "overall"), Wins(0, 5, 0)),
        (("minatar", "wide", "last"), Wins(0, 5, 0)),
        (("atari", "baseline", "overall"), Wins(6, 32, 11)),
        (("atari", "baseline", "last"), Wins(9, 30, 10)),
        (("atari", "wide", "overall"), Wins(7, 35, 7)),
        (("atari", "wide", "last"), Wins(8, 34, 7)),
        (("atari", "deep", "overall"), Wins(5, 36, 8)),
        (("atari", "deep", "last"), Wins(7, 31, 11)),
    ],
)
def test_the_papers_scores_through_the_table_of_wins(key: tuple[str, str, str], counted: Wins) -> None:
    assert paper_recount(*key) == counted == _count_with_decimals(*key)


def _count_with_decimals(domain: str, network: str, metric: str) -> Wins:
    """Count with whole tenths, in which the paper is printed, and the intervals' ends compared one by one."""
    found: dict[str, dict[str, tuple[Decimal, Decimal]]] = {}
    with (Path(dae.__file__).parent / "paper" / "scores.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["domain"], row["network"], row["metric"]) == (domain, network, metric):
                mean, error = Decimal(row["mean"]), Decimal(row["standard_error"])
                found.setdefault(row["environment"], {})[row["method"]] = (mean - error, mean + error)
    gae = sum(pair["gae"][0] > pair["dae"][1] for pair in found.values())
    dae_ = sum(pair["dae"][0] > pair["gae"][1] for pair in found.values())
    return Wins(gae, dae_, len(found) - gae - dae_)


def test_one_rule_comes_close_to_the_printed_wins() -> None:
    """What the report says of it: DAE if above; else GAE if it reaches DAE's upper end; else similar."""
    off = {}
    for (domain, network, metric), (gae_wins, dae_wins, _) in WINS.items():
        if domain != "atari":
            continue
        pairs = [
            [paper_scores()[domain, network, game, metric, method] for method in ("gae", "dae")]
            for game in paper_games(domain)
        ]
        tenths = [[(round(10 * (s.mean - s.error)), round(10 * (s.mean + s.error))) for s in pair] for pair in pairs]
        dae_above = sum(d[0] > g[1] for g, d in tenths)
        gae_reaches = sum(g[0] >= d[1] for g, d in tenths if not d[0] > g[1])
        off[network, metric] = max(abs(dae_above - dae_wins), abs(gae_reaches - gae_wins))
    assert sorted(off.values()) == [0, 0, 0, 1, 1, 1]


def test_the_printed_wins_add_up() -> None:
    for (domain, _, _), printed in WINS.items():
        assert sum(printed) == len(paper_games(domain))


@pytest.mark.parametrize(("env", "frames"), [("MinAtar/Breakout-v1", 10_000_000), ("ALE/Pong-v5", 40_000_000)])
@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("gae", {"epochs": 4, "critic_coef": 0.5, "max_grad_norm": 0.5, "gae_lambda": 0.95}),
        ("dae", {"epochs": 6, "critic_coef": 1.5, "max_grad_norm": None}),
        ("duel", {"epochs": 6, "critic_coef": 1.5, "max_grad_norm": None}),
        ("indirect", {"epochs": 6, "critic_coef": 1.5, "max_grad_norm": None}),
    ],
)
def test_the_preset_has_the_settings_that_the_paper_prints(env: str, frames: int, method: str, own: dict) -> None:
    """Tables 2 to 4 of the paper, typed in here once more."""
    printed = {
        "actors": 1024,
        "steps": 128,
        "batch_size": 256,
        "learning_rate": 2.5e-4,
        "clip_range": 0.1,
        "anneal": True,
        "gamma": 0.99,
        "ent_coef": 0.01,
        "normalize": True,
        "finishing": True,
    }
    settings = parse([env, "--advantage", method]).to_json()
    assert {"frames": frames, **printed, **own}.items() <= settings.items()
