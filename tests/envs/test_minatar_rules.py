"""The compiled games against the `minatar` package, step by step, with the same actions and the same random draws."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dae.envs.minatar.batch import GAMES, MinAtarBatch
from tests.envs.crafted import random_states, write
from tests.envs.package import side_by_side
from tests.envs.players import PLAYERS

# What a long comparison must have met to mean something.
EVENTS = {
    "asterix": {"gold", "death", "all lanes full", "ramped"},
    "breakout": {"brick", "death", "wall refilled"},
    "freeway": {"crossing", "hit by a car", "end of time"},
    "seaquest": {"shot", "surfaced with six divers", "surfaced early", "oxygen death", "enemy bullet", "ramped"},
    "space_invaders": {"shot", "alien shot", "death", "next wave", "ramped"},
}


def events(name: str, game: Any, before: dict[str, Any], reward: float, terminal: bool) -> set[str]:
    """Name what happened in this step of the package's game."""
    now = vars(game)
    found = {
        "asterix": lambda: {
            "gold": reward > 0,
            "death": terminal,
            "all lanes full": all(entity is not None for entity in now["entities"]),
            "ramped": now["ramp_index"] > 3,
        },
        "breakout": lambda: {
            "brick": reward > 0,
            "death": terminal,
            "wall refilled": np.count_nonzero(now["brick_map"]) > before["bricks"],
        },
        "freeway": lambda: {
            "crossing": reward > 0,
            "hit by a car": reward == 0 and now["pos"] == 9 and before["pos"] < 9,
            "end of time": terminal and now["terminate_timer"] < 0,
        },
        "seaquest": lambda: {
            "shot": reward > 0 and before["oxygen"] >= now["oxygen"],
            "surfaced with six divers": before["diver_count"] == 6 and now["diver_count"] == -1,
            "surfaced early": now["oxygen"] > before["oxygen"] and 0 < before["diver_count"] < 6,
            "oxygen death": terminal and before["oxygen"] <= 0,
            "enemy bullet": len(now["e_bullets"]) > 0,
            "ramped": now["ramp_index"] > 3,
        },
        "space_invaders": lambda: {
            "shot": reward > 0,
            "alien shot": now["e_bullet_map"].any(),
            "death": terminal,
            "next wave": np.count_nonzero(now["alien_map"]) > before["aliens"],
            "ramped": now["ramp_index"] > 0,
        },
    }[name]()
    return {event for event, happened in found.items() if happened}


def memory(game: Any) -> dict[str, Any]:
    """What `events` must know of the step before."""
    kept = {key: value for key, value in vars(game).items() if np.isscalar(value)}
    kept["bricks"] = np.count_nonzero(getattr(game, "brick_map", 0))
    kept["aliens"] = np.count_nonzero(getattr(game, "alien_map", 0))
    return kept


def compare(
    name: str, *, sticky: float, ramping: bool, n_steps: int, n_envs: int, epsilon: float, seed: int
) -> Counter[str]:
    """Play side by side, asserting equality at every step, and return how often each event was seen."""
    batch, games = side_by_side(name, n_envs=n_envs, seed=seed, sticky=sticky, ramping=ramping)
    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    players = PLAYERS[name]
    np.testing.assert_array_equal(batch.observe(), [game.observation() for game in games])
    for t in range(n_steps):
        actions = np.array(
            [
                int(rng.integers(6)) if rng.random() < epsilon else players[i % len(players)](game.game)
                for i, game in enumerate(games)
            ]
        )
        before = [memory(game.game) for game in games]
        ours = batch.step(actions)
        finals = dict(zip(ours.ended.tolist(), ours.final_observations, strict=True))
        for i, game in enumerate(games):
            reward, terminal = game.act(int(actions[i]))
            where = f"{name}, step {t}, environment {i}"
            assert (ours.rewards[i], ours.terminated[i], ours.truncated[i]) == (reward, terminal, False), where
            seen.update(events(name, game.game, before[i], reward, terminal))
            if terminal:
                assert np.array_equal(finals[i], game.observation()), where
                game.environment.reset()
            assert np.array_equal(ours.observations[i], game.observation()), where
            assert tuple(int(batch._states[i][word]) for word in ("rng0", "rng1")) == game.stream.words, where
    return seen


VARIANTS = [(0.0, False), (0.0, True), (0.1, False), (0.1, True)]


@pytest.mark.parametrize(("sticky", "ramping"), VARIANTS, ids=["plain", "ramping", "sticky", "sticky and ramping"])
@pytest.mark.parametrize("name", GAMES)
def test_every_step_equals_the_package(name: str, sticky: float, ramping: bool) -> None:
    compare(name, sticky=sticky, ramping=ramping, n_steps=640, n_envs=8, epsilon=0.1, seed=1)


@pytest.mark.parametrize("ramping", [False, True], ids=["plain", "ramping"])
@pytest.mark.parametrize(("name", "version"), [*((name, "1.0.15") for name in GAMES), ("seaquest", "1.0.10")])
def test_random_states_go_on_as_in_the_package(name: str, version: str, ramping: bool) -> None:
    """Rules that play seldom meets: full lanes, landing aliens, the last speeds of a ramp, the last moment."""
    n_envs, n_rounds, n_steps = 40, 10, 25
    batch, games = side_by_side(name, n_envs=n_envs, seed=4, sticky=0.0, ramping=ramping, version=version)
    rng = np.random.default_rng(4)
    for _ in range(n_rounds):
        states = random_states(batch, rng)
        batch.set_state(states)
        for game, state in zip(games, states, strict=True):
            write(name, state, game.game)
            game.stream.words = int(state["rng0"]), int(state["rng1"])
        over = np.zeros(n_envs, bool)
        np.testing.assert_array_equal(batch.observe(), [game.observation() for game in games])
        for _ in range(n_steps):
            actions = rng.integers(6, size=n_envs)
            ours = batch.step(actions)
            for i in np.flatnonzero(~over):
                reward, terminal = games[i].act(int(actions[i]))
                assert (ours.rewards[i], ours.terminated[i]) == (reward, terminal)
                shown = ours.final_observations[list(ours.ended).index(i)] if terminal else ours.observations[i]
                assert np.array_equal(shown, games[i].observation())
            over |= ours.terminated


def test_older_versions_gave_one_step_more_air() -> None:
    batches = [MinAtarBatch("seaquest", 1, seed=0, version=version) for version in ("1.0.15", "1.0.10")]
    lit, ended = [], []
    for batch in batches:
        state = batch.get_state()
        state["oxygen"], state["sub_y"] = 1, 8
        batch.set_state(state)
        steps = [batch.step([0]) for _ in range(3)]
        lit.append([int(step.observations[0, 7].sum()) for step in steps])
        ended.append([bool(step.terminated[0]) for step in steps])
    assert ended == [[False, True, False], [False, False, True]]
    assert lit[0][0] == lit[1][0] == 0, "the tank is empty"
    assert lit[1][1] == 9, "and then looks almost full, in the older version"


def test_a_submarine_that_is_hit_while_it_moves_still_fires() -> None:
    batch, games = side_by_side("seaquest", n_envs=1, seed=0, sticky=0.0, ramping=False)
    state = batch.get_state()
    state["sub_x"], state["sub_y"], state["n_subs"], state["n_bullets"] = 1, 8, 1, 1
    state["subs"][0, 0] = 5, 4, 1, 0, 0  # about to move to x = 6, and to fire
    state["bullets"][0, 0] = 7, 4, 0  # on its way there
    batch.set_state(state)
    write("seaquest", state[0], games[0].game)
    step = batch.step([0])
    assert games[0].act(0) == (step.rewards[0], False) == (1.0, False)
    assert batch.get_state()["n_enemy_bullets"][0] == len(games[0].game.e_bullets) == 1
    np.testing.assert_array_equal(step.observations[0], games[0].observation())


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_every_step_equals_the_package_in_deep_states(name: str) -> None:
    """240,000 steps a game, half of them by a player that hardly errs, and every rule met on the way."""
    seen: Counter[str] = Counter()
    for sticky, ramping in VARIANTS:
        for epsilon in (0.02, 0.3):
            seen += compare(name, sticky=sticky, ramping=ramping, n_steps=7500, n_envs=4, epsilon=epsilon, seed=2)
    assert not EVENTS[name] - set(seen), f"never met: {EVENTS[name] - set(seen)}; met {seen}"
