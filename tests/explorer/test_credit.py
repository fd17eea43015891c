"""The arithmetic of credit against sums written out, and the data as JSON and as a table."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dae.errors import InvalidValue
from dae.explorer import Episode, Segment, csv_rows, to_json
from dae.explorer.credit import credit_of, decompose
from tests.explorer.explorations import NAMES, episode, exploration, truth

GAMMA = 0.9
PLAYED = episode(23, borders=(7, 8), cut=True)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("later", [0, 5])
def test_the_parts_of_a_return_add_up_to_the_return_of_the_rewards(number: int, later: int) -> None:
    segment = PLAYED.segments[number]
    first = min(segment.start + later, segment.end - 1)
    expected, discount = 0.0, 1.0
    for step in range(first, segment.end):
        expected += discount * PLAYED.rewards[step]
        discount *= GAMMA
    expected += 0.0 if segment.terminated else discount * segment.bootstrap
    parts = decompose(PLAYED, GAMMA, segment, first)
    assert parts.total == pytest.approx(expected, abs=1e-12)
    assert parts.value + parts.choices.sum() + parts.luck.sum() == pytest.approx(expected, abs=1e-12)
    assert parts.choices[0] == PLAYED.advantages[first, PLAYED.actions[first]]


def test_the_credit_of_each_step_is_what_its_definition_says() -> None:
    credit = credit_of(PLAYED, GAMMA)
    ends = {segment.end - 1: segment for segment in PLAYED.segments}
    for step in range(23):
        row, taken = PLAYED.advantages[step].astype(float).tolist(), PLAYED.actions[step]
        following = ends[step].bootstrap if step in ends else float(PLAYED.values[step + 1])
        assert credit.luck[step] == pytest.approx(
            PLAYED.rewards[step] + GAMMA * following - PLAYED.values[step] - row[taken], abs=1e-12
        )
        assert credit.of_choice[step] == row[taken]
        assert credit.costs[step] == max(row) - row[taken]
        assert credit.stakes[step] == max(row) - min(row)
        assert row[credit.best[step]] == max(row)
        first = next(segment.start for segment in PLAYED.segments if segment.start <= step < segment.end)
        so_far = sum(GAMMA ** (k - first) * credit.of_choice[k] for k in range(first, step + 1))
        assert credit.cumulative[step] == pytest.approx(so_far, abs=1e-12)


def test_without_advantages_luck_is_all_that_was_not_expected() -> None:
    with_choice = credit_of(PLAYED, GAMMA)
    credit = credit_of(replace(PLAYED, advantages=None), GAMMA)
    assert credit.of_choice is None
    np.testing.assert_allclose(credit.luck, with_choice.luck + with_choice.of_choice, atol=1e-12)
    assert credit.cumulative[1] == pytest.approx(credit.luck[0] + GAMMA * credit.luck[1], abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": PLAYED.values[:-1]}, "values has shape"),
        ({"rewards": np.full(23, np.nan)}, "rewards has values that are not finite"),
        ({"segments": [Segment(0, 5, True, 0.0), Segment(6, 23, True, 0.0)]}, "do not cover the 23 steps"),
        ({"segments": []}, "do not cover"),
        ({"actions": np.full(23, 6)}, "there are 6"),
    ],
)
def test_an_episode_that_does_not_fit_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        replace(PLAYED, **changes)


def test_an_exploration_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InvalidValue, match="there are 2 names for 6 actions"):
        exploration(PLAYED, action_names=["a", "b"])
    with pytest.raises(InvalidValue, match="source=None"):
        exploration(PLAYED, source=None)
    with pytest.raises(InvalidValue, match="there are no episodes"):
        exploration(PLAYED, episodes=[])


def test_the_readable_json_has_all_numbers() -> None:
    played = replace(PLAYED, truths=[replace(truth(PLAYED, 3), value_error=float("nan"))])
    whole = exploration(played, gamma=GAMMA)
    content = json.loads(json.dumps(to_json(whole), allow_nan=False))
    assert content["gamma"] == GAMMA
    assert content["action_names"] == NAMES
    (one,) = content["episodes"]
    for name in ("actions", "rewards", "scores", "values", "probabilities", "advantages"):
        np.testing.assert_array_equal(np.array(one[name], getattr(played, name).dtype), getattr(played, name))
    np.testing.assert_array_equal(one["luck"], credit_of(played, GAMMA).luck)
    assert [s["return"] for s in one["segments"]] == [decompose(played, GAMMA, s).total for s in played.segments]
    assert one["truths"][0]["value_error"] is None
    assert one["truths"][0]["q"] == played.truths[0].q.tolist()


def test_the_table_has_a_row_for_each_step_of_each_episode() -> None:
    head, *rows = csv_rows(exploration(PLAYED, episode(5, seed=1)))
    assert len(rows) == 28
    assert {len(row) for row in rows} == {len(head)}
    row = dict(zip(head, rows[9], strict=True))
    assert (row["episode"], row["step"], row["segment"]) == (0, 9, 2)
    assert row["action_name"] == NAMES[PLAYED.actions[9]]
    assert np.float32(row["advantage left"]) == PLAYED.advantages[9, 1]
    assert row["cost"] == credit_of(PLAYED, 0.99).costs[9]


def test_the_table_of_a_run_without_advantages_does_not_name_them() -> None:
    head, *rows = csv_rows(exploration(replace(PLAYED, advantages=None), source=None))
    assert not [name for name in head if "advantage" in str(name)]
    assert {len(row) for row in rows} == {len(head)}


def test_episodes_keep_their_pictures_out_of_the_readable_json() -> None:
    assert isinstance(PLAYED, Episode)
    assert "picture" not in to_json(exploration(PLAYED))["episodes"][0]
    assert to_json(exploration(PLAYED), packed=True)["episodes"][0]["picture"]["type"] == "grid"
