"""A batch of games: independence of size and threads, snapshots, what it gives out, and what it refuses."""

import copy
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import dae
from dae.envs.minatar import GAMES, BatchStep, MinAtarBatch, breakout
from dae.envs.minatar.loops import compiled, start_range, step_range
from dae.envs.minatar.rng import random_streams, uniform
from dae.envs.minatar.state import state_dtype

STICKY = {"sticky_action_prob": 0.1, "difficulty_ramping": True}


def play(batch: MinAtarBatch, n_steps: int, seed: int = 0) -> list[BatchStep]:
    """Play with random actions that depend on the step and the environment only."""
    actions = np.random.default_rng(seed).integers(batch.n_actions, size=(n_steps, 64))
    return [batch.step(row[: batch.n_envs]) for row in actions]


def assert_same(first: list[BatchStep], second: list[BatchStep]) -> None:
    for one, other in zip(first, second, strict=True):
        for field in BatchStep._fields:
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


@pytest.mark.parametrize("game", GAMES)
def test_results_do_not_depend_on_threads(game: str) -> None:
    runs = [play(MinAtarBatch(game, 61, seed=5, n_threads=n, **STICKY), 400) for n in (1, 2, 3)]
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
    assert sum(len(step.ended) for step in runs[0]) > 0 or game == "freeway"


@pytest.mark.parametrize("game", GAMES)
def test_results_do_not_depend_on_grouping(game: str) -> None:
    whole = MinAtarBatch(game, 12, seed=3, **STICKY)
    parts = [MinAtarBatch(game, size, seed=3, first_index=first, **STICKY) for first, size in ((0, 5), (5, 1), (6, 6))]
    actions = np.random.default_rng(0).integers(whole.n_actions, size=(300, 12))
    for row in actions:
        step = whole.step(row)
        split = [part.step(piece) for part, piece in zip(parts, np.split(row, [5, 6]), strict=True)]
        for field in ("observations", "rewards", "terminated", "final_observations", "episode_returns"):
            np.testing.assert_array_equal(getattr(step, field), np.concatenate([getattr(s, field) for s in split]))


def test_seeds_and_indices_give_different_streams_that_look_uniform() -> None:
    words = np.stack([np.stack(random_streams([seed], np.arange(64)), -1) for seed in range(64)])
    assert len(np.unique(words.reshape(-1, 2), axis=0)) == 64 * 64
    # A game's own record: numba would use code compiled for a record of two words for all games, and warn.
    states = np.zeros(64 * 64, state_dtype(breakout.FIELDS))
    states["rng0"], states["rng1"] = words.reshape(-1, 2).T
    draws = np.array([[uniform(s) for _ in range(20)] for s in states])
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    expected = draws.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 50  # chi-squared with 19 degrees of freedom: p = 1e-4 at 50
    assert abs(np.corrcoef(draws[:-64, 0], draws[64:, 0])[0, 1]) < 0.06
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 0.06


def test_a_seed_repeats_a_game_and_another_does_not() -> None:
    first, again, other = (play(MinAtarBatch("asterix", 4, seed=seed), 200) for seed in (1, 1, 2))
    assert_same(first, again)
    assert any((a.observations != b.observations).any() for a, b in zip(first, other, strict=True))
    batch = MinAtarBatch("asterix", 4, seed=9)
    batch.reset(seed=1)
    assert_same(first, play(batch, 200))


def test_without_a_seed_every_batch_is_another() -> None:
    first, second = MinAtarBatch("breakout", 4), MinAtarBatch("breakout", 4)
    assert (first.get_state()["rng0"] != second.get_state()["rng0"]).all()


@pytest.mark.parametrize("game", GAMES)
def test_a_restored_snapshot_continues_bit_by_bit(game: str, tmp_path: Path) -> None:
    batch = MinAtarBatch(game, 16, seed=1, **STICKY)
    play(batch, 250)
    np.save(tmp_path / "state.npy", batch.get_state(), allow_pickle=False)
    before = batch.observe()
    expected = play(batch, 250, seed=1)

    fresh = MinAtarBatch(game, 16, seed=77, **STICKY)
    fresh.set_state(np.load(tmp_path / "state.npy", allow_pickle=False))
    np.testing.assert_array_equal(fresh.observe(), before)
    assert_same(play(fresh, 250, seed=1), expected)


@pytest.mark.parametrize("game", GAMES)
def test_some_environments_of_a_snapshot_fit_into_other_slots(game: str) -> None:
    batch = MinAtarBatch(game, 8, seed=1, **STICKY)
    play(batch, 200)
    snapshot = batch.get_state()
    target = MinAtarBatch(game, 6, seed=2, **STICKY)
    untouched = target.get_state()
    target.set_state(np.repeat(snapshot[[3, 7]], 2), indices=[5, 0, 2, 4])
    np.testing.assert_array_equal(target.get_state()[[5, 0, 2, 4]], snapshot[[3, 3, 7, 7]])
    np.testing.assert_array_equal(target.get_state()[[1, 3]], untouched[[1, 3]])
    for _ in range(100):
        ours = batch.step(np.ones(8, int))
        theirs = target.step(np.ones(6, int))
        np.testing.assert_array_equal(theirs.observations[[5, 0, 2, 4]], ours.observations[[3, 3, 7, 7]])


@pytest.mark.parametrize("indices", [[1, 2], slice(1, 3), np.array([False, True, True, False]), [], 3, [-1]])
def test_slots_can_be_named_as_in_numpy(indices: Any) -> None:
    batch, source = MinAtarBatch("breakout", 4, seed=0), MinAtarBatch("breakout", 4, seed=1).get_state()
    expected = batch.get_state()
    expected[indices] = source[indices]
    batch.set_state(source[indices], indices)
    np.testing.assert_array_equal(batch.get_state(), expected)


def test_the_first_reset_is_the_start_that_the_seed_gives() -> None:
    batch = MinAtarBatch("freeway", 4, seed=5)
    start = batch.get_state()
    np.testing.assert_array_equal(batch.reset(), batch.observe())
    np.testing.assert_array_equal(batch.get_state(), start)
    batch.reset()
    assert (batch.get_state() != start).all()
    batch.reset(seed=5)
    np.testing.assert_array_equal(batch.get_state(), start)


def test_a_copy_plays_on_by_itself() -> None:
    batch = MinAtarBatch("seaquest", 4, seed=0, **STICKY)
    play(batch, 50)
    twins = copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))
    expected = play(batch, 50)
    for twin in twins:
        assert_same(play(twin, 50), expected)


def test_no_layout_of_actions_or_masks_compiles_anything_anew() -> None:
    batch = MinAtarBatch("breakout", 4, seed=0)
    before = [len(compiled(loop, batch.rules).signatures) for loop in (step_range, start_range)]
    wide = np.zeros((4, 3), np.int64)
    frozen = np.zeros(4, np.int64)
    frozen.flags.writeable = False
    for actions in (wide[:, 0], frozen, np.broadcast_to(0, 4), np.zeros(4, np.uint8), [0, 0, 0, 0], wide[::-1, 1]):
        batch.step(actions)
    batch.reset(mask=np.ones((4, 2), bool)[:, 0])
    batch.reset(mask=np.broadcast_to(True, 4))
    assert [len(compiled(loop, batch.rules).signatures) for loop in (step_range, start_range)] == before == [1, 1]


def test_a_snapshot_and_observations_are_not_overwritten() -> None:
    batch = MinAtarBatch("breakout", 8, seed=1)
    snapshot, observations = batch.get_state(), batch.observe()
    kept = snapshot.copy(), observations.copy()
    steps = play(batch, 50)
    copies = [step.observations.copy() for step in steps]
    finals = [step.final_observations.copy() for step in steps]
    play(batch, 50)
    np.testing.assert_array_equal(snapshot, kept[0])
    np.testing.assert_array_equal(observations, kept[1])
    for step, seen, final in zip(steps, copies, finals, strict=True):
        np.testing.assert_array_equal(step.observations, seen)
        np.testing.assert_array_equal(step.final_observations, final)


@pytest.mark.parametrize("game", GAMES)
def test_observations_are_contiguous_flags_channel_first(game: str) -> None:
    batch = MinAtarBatch(game, 3, seed=0)
    observations = batch.step([0, 0, 0]).observations
    assert observations.shape == (3, len(GAMES[game].CHANNELS), 10, 10)
    assert observations.dtype == bool
    assert observations.flags.c_contiguous
    assert batch.observation_space.contains(observations[0])
    assert set(np.unique(observations.view(np.uint8))) == {0, 1}


def test_a_step_limit_truncates_and_counts() -> None:
    batch = MinAtarBatch("freeway", 5, seed=0, max_episode_steps=7)
    steps = play(batch, 21)
    for t, step in enumerate(steps, start=1):
        assert (step.truncated == (t % 7 == 0)).all()
        assert not step.terminated.any()
        if t % 7 == 0:
            assert (step.episode_lengths == 7).all()
            assert (step.observations[:, 0, 9, 4]).all(), "a new episode starts at the bottom"


def test_termination_wins_over_truncation_in_the_same_step() -> None:
    free = MinAtarBatch("breakout", 64, seed=0)
    ends = {}
    for t, step in enumerate(play(free, 60), start=1):
        for i in step.ended:
            ends.setdefault(int(i), t)
    limit = sorted(ends.values())[len(ends) // 2]
    limited = MinAtarBatch("breakout", 64, seed=0, max_episode_steps=limit)
    last = play(limited, limit)[-1]
    dying = [i for i, t in ends.items() if t == limit]
    assert dying
    assert last.terminated[dying].all()
    assert not last.truncated[dying].any()
    assert last.truncated[[i for i, t in ends.items() if t > limit]].all()


def test_episode_statistics_add_up() -> None:
    batch = MinAtarBatch("breakout", 16, seed=0)
    returns, lengths = np.zeros(16), np.zeros(16)
    ended = 0
    for step in play(batch, 300):
        returns += step.rewards
        lengths += 1
        np.testing.assert_array_equal(step.episode_returns, returns[step.ended])
        np.testing.assert_array_equal(step.episode_lengths, lengths[step.ended])
        returns[step.ended] = lengths[step.ended] = 0
        ended += len(step.ended)
    assert ended > 100


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 3], ValueError, "action 3 of environment 1 is out of range: breakout has the actions 0 to 2"),
        ([-1, 0], ValueError, "action -1 of environment 0"),
        ([0], ValueError, r"actions have shape \(1,\)"),
        ([[0, 0]], ValueError, r"actions have shape \(1, 2\)"),
        ([0.0, 1.0], TypeError, "actions have dtype float64"),
        ([True, False], TypeError, "actions have dtype bool"),
        (["a", "b"], TypeError, "actions have dtype"),
    ],
)
def test_bad_actions_are_refused_and_change_nothing(actions: object, error: type[Exception], message: str) -> None:
    batch = MinAtarBatch("breakout", 2, seed=0)
    before = batch.get_state()
    with pytest.raises(error, match=message):
        batch.step(actions)  # type: ignore[arg-type]
    np.testing.assert_array_equal(batch.get_state(), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "pong"}, "game='pong' is not known; choose one of asterix, breakout"),
        ({"n_envs": 0}, "n_envs is 0: it must be an integer of at least 1"),
        ({"n_envs": 2.5}, "n_envs is 2.5"),
        ({"n_envs": True}, "n_envs is True"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"max_episode_steps": 0}, "max_episode_steps is 0"),
        ({"sticky_action_prob": 1.5}, "sticky_action_prob is 1.5: it must be a number in"),
        ({"sticky_action_prob": float("nan")}, "sticky_action_prob is nan"),
        ({"sticky_action_prob": "0.1"}, "sticky_action_prob is '0.1'"),
        ({"difficulty_ramping": "no"}, "difficulty_ramping is 'no': it must be True or False"),
        ({"max_episode_steps": 2**64}, "max_episode_steps is 18446744073709551616: it must be at most"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed is 18446744073709551616: it must be at most"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MinAtarBatch(**({"game": "breakout", "n_envs": 2} | options))  # type: ignore[arg-type]


def test_bad_seeds_and_masks_are_refused() -> None:
    batch = MinAtarBatch("breakout", 3, seed=0)
    with pytest.raises(ValueError, match="seed has 2 entries: it must be one number or 3"):
        batch.reset([1, 2])
    with pytest.raises(ValueError, match=r"mask is bool of shape \(2,\)"):
        batch.reset(mask=np.ones(2, bool))
    with pytest.raises(ValueError, match="mask is int64"):
        batch.reset(mask=np.ones(3, np.int64))


def test_a_foreign_or_broken_snapshot_is_refused() -> None:
    batch = MinAtarBatch("breakout", 2, seed=0)
    good = batch.get_state()
    with pytest.raises(ValueError, match="it must be a snapshot of breakout"):
        batch.set_state(MinAtarBatch("freeway", 2, seed=0).get_state())
    with pytest.raises(ValueError, match="one environment for each slot"):
        batch.set_state(good[:1])
    with pytest.raises(ValueError, match="each slot once"):
        batch.set_state(good, indices=[0, 0])
    with pytest.raises(ValueError, match=r"indices \[0, 2\] are not all environments from 0 to 1"):
        batch.set_state(good, indices=[0, 2])
    empty = good.copy()
    empty["rng0"] = empty["rng1"] = 0
    with pytest.raises(ValueError, match="an empty random stream"):
        batch.set_state(empty)
    for field, value in (("ball_x", 10), ("bricks", 2), ("last_action", -1)):
        broken = good.copy()
        broken[field] = value
        with pytest.raises(ValueError, match=f"state holds {field}"):
            batch.set_state(broken)
    np.testing.assert_array_equal(batch.get_state(), good)


WILD_GAMES = """
import sys
import numpy as np
from dae.envs.minatar import GAMES, MinAtarBatch

game = sys.argv[1]
batch = MinAtarBatch(game, 2000, seed=0, sticky_action_prob=0.1, difficulty_ramping=True)
rng = np.random.default_rng(0)
for _ in range(5):
    wild = batch.get_state()
    for field in GAMES[game].FIELDS:
        low = max(field.low, -100)
        wild[field.name] = rng.integers(low, field.high, size=(2000, *field.shape), endpoint=True)
    batch.set_state(wild)
    for _ in range(40):
        batch.step(rng.integers(batch.n_actions, size=2000))
print("survived")
"""


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_no_state_within_its_bounds_leads_out_of_the_arrays(game: str, tmp_path: Path) -> None:
    """What `set_state` lets through need not be reachable, but must be safe: Numba checks every index here."""
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", WILD_GAMES, game], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout == "survived\n", result.stderr[-2000:]


@pytest.mark.parametrize("game", GAMES)
def test_pictures_show_every_object_in_its_colour(game: str) -> None:
    batch = MinAtarBatch(game, 2, seed=0)
    play(batch, 40)
    pictures = batch.render(scale=20)
    assert pictures.shape == (2, 200, 200, 3)
    assert pictures.dtype == np.uint8
    colours = list(GAMES[game].CHANNELS.values())
    for picture, observation in zip(pictures, batch.observe(), strict=True):
        for y, x in np.argwhere(observation.any(0)):
            channel = np.flatnonzero(observation[:, y, x])[-1]
            assert tuple(picture[20 * y + 10, 20 * x + 10]) == colours[channel]
        y, x = np.argwhere(~observation.any(0))[0]
        assert tuple(picture[20 * y + 10, 20 * x + 10]) not in colours


def test_an_edit_of_any_source_compiles_anew(tmp_path: Path) -> None:
    """Numba by itself would go on with the old code when a function that is called has changed."""
    package = tmp_path / "dae"
    shutil.copytree(Path(dae.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "from dae.envs.minatar import MinAtarBatch; import dae, numpy as np; b = MinAtarBatch('breakout', 4, seed=0);"
        "[b.step(np.zeros(4, int)) for _ in range(4)];"
        "print(dae.__file__, b.get_state()['episode_length'].tolist(), b.get_state()['rng0'].tolist())"
    )
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}

    def run() -> str:
        command = [sys.executable, "-P", "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first = run()
    assert str(package) in first
    assert run() == first
    for name, old, new in (
        ("loops.py", "episode_length += 1", "episode_length += 2"),
        ("rng.py", "_rotate(a, 49)", "_rotate(a, 48)"),
    ):
        source = package / "envs" / "minatar" / name
        source.write_text(source.read_text().replace(old, new))
        changed = run()
        assert changed != first
        first = changed


def test_where_nothing_can_be_cached_it_works_and_says_so(tmp_path: Path) -> None:
    """As in a container that runs under a user without a home, from a package it does not own."""
    code = (
        "import numba.core.caching as c; c.CacheImpl._locator_classes = [];"
        "from dae.envs.minatar import MinAtarBatch; MinAtarBatch('breakout', 4, seed=0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.count("set NUMBA_CACHE_DIR to a writable folder") == 1


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="needs two cores")
def test_a_forked_process_may_use_a_batch_with_threads() -> None:
    code = """
import os, numpy as np
from dae.envs.minatar import MinAtarBatch
batch = MinAtarBatch("breakout", 64, seed=0, n_threads=2)
batch.step(np.zeros(64, int))
child = os.fork()
step = batch.step(np.zeros(64, int))
print(step.observations.sum(), flush=True)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = result.stdout.split()
    assert first == second


def test_first_use_tells_that_it_compiles_and_later_uses_load_from_disk(tmp_path: Path) -> None:
    code = (
        "from dae.envs.minatar import MinAtarBatch, loops; batch = MinAtarBatch('breakout', 4, seed=0);"
        "print(sum(loops.compiled(loops.step_range, batch.rules).stats.cache_misses.values()))"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    first = run()
    assert "preparing MinAtar Breakout; it is compiled for this machine once" in first.stderr
    assert "ready after" in first.stderr
    assert first.stdout == "1\n"
    assert run().stdout == "0\n"
