"""Atari: our games are Stable-Baselines3's, step for step; they are restored exactly; and their processes end."""

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import dae
from dae.envs import families, family_of, full_id
from dae.envs.atari.options import AtariOptions
from dae.envs.atari.vec_env import AtariVecEnv
from dae.errors import InvalidValue, UserError
from dae.serialization import from_bytes, to_bytes
from tests.processes import wait_until

BREAKOUT = "ALE/Breakout-v5"


def make(env_id: str, n_envs: int, **options: Any) -> Any:
    here = {} if options.get("backend") == "sb3" else {"n_processes": 1}
    return dae.make_vec_env(env_id, n_envs, **here | options)


def play(env: Any, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [env.step(rng.integers(env.action_space.n, size=env.num_envs)) for _ in range(steps)]


def assert_alike(one: list[Any], two: list[Any]) -> None:
    for (seen, rewards, dones, infos), (others, other_rewards, other_dones, other_infos) in zip(one, two, strict=True):
        np.testing.assert_array_equal(seen, others)
        np.testing.assert_array_equal(rewards, other_rewards)
        np.testing.assert_array_equal(dones, other_dones)
        for info, other in zip(infos, other_infos, strict=True):
            assert ("episode" in info) == ("episode" in other)
            for part in ("r", "l"):
                assert info.get("episode", {}).get(part) == other.get("episode", {}).get(part)
            assert info.get("TimeLimit.truncated", False) == other.get("TimeLimit.truncated", False)


# Against Stable-Baselines3. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("Breakout", {}),  # lives, and fire to begin
        ("Pong", {"max_episode_frames": 1000}),  # no lives
        ("Qbert", {"clip_reward": False}),  # shows 0 lives for a while
        ("SpaceInvaders", {"terminal_on_life_loss": False, "full_action_space": True, "max_episode_frames": 900}),
    ],
)
def test_every_step_is_that_of_stable_baselines3(game: str, options: dict[str, Any]) -> None:
    """Without the no-ops, which are drawn in another way, nothing is random."""
    ours, theirs = (
        make(f"ALE/{game}-v5", 2, noop_max=0, **options),
        make(f"ALE/{game}-v5", 2, noop_max=0, backend="sb3", **options),
    )
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    steps, reference = play(ours, 350), play(theirs, 350)
    assert_alike(steps, reference)
    assert sum(dones.sum() for _, _, dones, _ in steps) > 1
    # What a life ended with, too; where the game itself ended within a step, theirs is an older picture.
    for step, other in zip(steps, reference, strict=True):
        for info, of_other in zip(step[3], other[3], strict=True):
            if "terminal_observation" in info and "episode" not in info:
                np.testing.assert_array_equal(info["terminal_observation"], of_other["terminal_observation"])


@pytest.mark.slow
@pytest.mark.parametrize("game", ["Breakout", "SpaceInvaders", "Qbert"])
def test_scores_are_distributed_as_with_stable_baselines3(game: str) -> None:
    """With all randomness: no-ops, and sticky actions."""
    from scipy.stats import ks_2samp

    def scores(backend: str) -> list[float]:
        env = make(f"ALE/{game}-v5", 8, seed=1, backend=backend, sticky_action_prob=0.25)
        env.reset()
        found: list[float] = []
        rng = np.random.default_rng(2)
        while len(found) < 150:
            infos = env.step(rng.integers(env.action_space.n, size=8))[3]
            found += [info["episode"]["r"] for info in infos if "episode" in info]
        return found

    assert ks_2samp(scores("dae"), scores("sb3")).pvalue > 0.01


def test_with_a_class_of_vector_environments_games_are_those_of_make_atari_env() -> None:
    ours = dae.make_vec_env("Pong", 2, vec_env_cls=DummyVecEnv)
    assert isinstance(ours, DummyVecEnv)
    assert ours.observation_space.shape == (84, 84, 1)
    assert ours.env_is_wrapped(AtariWrapper) == [True, True]
    assert ours.envs[0].unwrapped.ale.getFloat("repeat_action_probability") == 0  # type: ignore[attr-defined]
    small = dae.make_vec_env("Pong", 1, vec_env_cls=DummyVecEnv, wrapper_kwargs={"screen_size": 42})
    assert small.observation_space.shape == (42, 42, 1)
    own = dae.make_vec_env("ALE/Pong-v5", 1, wrapper_class=lambda env: env)
    assert own.observation_space.shape == (210, 160, 3)


# What a game is. -----------------------------------------------------------------------------------------------------


def test_the_ids_defaults_are_not_inherited() -> None:
    assert AtariOptions().sticky_action_prob == 0
    assert AtariOptions().max_episode_frames == 400_000
    reference = dae.make_vec_env("ALE/Pong-v5", 1, backend="sb3")
    ale = reference.unwrapped.envs[0].unwrapped.ale
    assert (ale.getInt("max_num_frames_per_episode"), ale.getFloat("repeat_action_probability")) == (400_000, 0)


def test_a_life_ends_an_episode_of_learning_and_the_score_is_that_of_the_game() -> None:
    env = make(BREAKOUT, 2)
    env.reset()
    raw, steps, lives, games = np.zeros(2), np.zeros(2, int), np.zeros(2, int), 0
    for observations, rewards, dones, infos in play(env, 600):
        steps += 1
        raw += [info.get("raw_reward", 0) for info in infos]
        assert set(rewards) <= {-1, 0, 1}
        for i in np.flatnonzero(dones):
            lives[i] += 1
            assert not observations[i, :3].any()  # nothing of before
            assert observations[i, 3].any()
            assert infos[i]["terminal_observation"][:3].any()
            if "episode" in infos[i]:
                # What the fire button brings after a loss is in the score, though no step of the agent had it.
                assert infos[i]["episode"]["r"] >= raw[i]
                assert infos[i]["episode"]["l"] == steps[i]
                assert lives[i] == 5
                raw[i], steps[i], lives[i], games = 0, 0, 0, games + 1
    assert games > 3


def test_frames_are_stacked_from_the_start_of_an_episode() -> None:
    env = make(BREAKOUT, 1)
    stack = np.zeros((4, 84, 84), np.uint8)
    stack[-1] = env.reset()[0, -1]
    for observations, _, dones, infos in play(env, 200):
        shifted = np.concatenate((stack[1:], (infos[0]["terminal_observation"] if dones[0] else observations[0])[-1:]))
        if dones[0]:
            np.testing.assert_array_equal(infos[0]["terminal_observation"], shifted)
            shifted = np.concatenate((np.zeros((3, 84, 84), np.uint8), observations[0, -1:]))
        np.testing.assert_array_equal(observations[0], shifted)
        stack = shifted


def test_the_limit_of_frames_truncates() -> None:
    env = make("ALE/Pong-v5", 1, max_episode_frames=200, noop_max=0)
    env.reset()
    ends = [(t, infos[0]) for t, (_, _, dones, infos) in enumerate(play(env, 120)) if dones[0]]
    # Two steps of fire come before the agent's.
    assert [t for t, _ in ends] == [47, 95]
    assert all(info["TimeLimit.truncated"] and info["episode"]["l"] == 48 for _, info in ends)


def test_an_end_of_the_game_is_one_whatever_the_limit_of_frames() -> None:
    """The limit may fall on any frame around the loss of a life: it is no truncation, and no game is lost."""
    env = make(BREAKOUT, 1, noop_max=0)
    env.reset()
    lost = next(t for t, (_, _, dones, _) in enumerate(play(env, 100)) if dones[0])
    before = 4 * (lost + 3)  # frames up to the end of that step: two steps of fire come first
    for limit in range(before - 3, before + 16, 2):
        env = make(BREAKOUT, 1, noop_max=0, max_episode_frames=limit)
        env.reset()
        infos = [infos[0] for _, _, _, infos in play(env, lost + 10)]
        assert not infos[lost]["TimeLimit.truncated"]
        lengths = [info["episode"]["l"] for info in infos if "episode" in info]
        assert lengths
        assert all(4 * length <= limit for length in lengths)
        assert ("episode" in infos[lost]) == (limit <= before + 12)


def test_sticky_actions_repeat_the_action_before() -> None:
    """With probability 1 the first one, a no-op, is held for ever: Breakout's ball never comes."""
    env = make(BREAKOUT, 1, sticky_action_prob=1.0)
    env.reset()
    assert not any(dones[0] or rewards[0] for _, rewards, dones, _ in play(env, 100))


# Randomness, snapshots, processes. -----------------------------------------------------------------------------------


def test_games_depend_on_the_seed_and_not_on_the_processes() -> None:
    options = {"sticky_action_prob": 0.25}
    one, two, other = (
        make(BREAKOUT, 3, seed=4, **options),
        make(BREAKOUT, 3, seed=4, n_processes=2, **options),
        make(BREAKOUT, 3, seed=5, **options),
    )
    first = one.reset()
    np.testing.assert_array_equal(first, two.reset())
    assert len({frames.tobytes() for frames in first}) > 1  # each has its own no-ops
    other.reset()
    steps = play(one, 60)
    assert_alike(steps, play(two, 60))
    different = play(other, 60)
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(steps, different, strict=True))
    two.close()


@pytest.mark.parametrize(
    ("game", "sticky"),
    # All but Breakout remember, through a reset, what was played before.
    [
        *(("Breakout", 0.0), ("Assault", 0.25)),
        *(pytest.param(game, 0.25, marks=pytest.mark.slow) for game in ("Frostbite", "IceHockey", "Tennis")),
    ],
)
def test_a_restored_game_continues_exactly(game: str, sticky: float) -> None:
    options = {"sticky_action_prob": sticky, "max_episode_frames": 400}
    env = make(f"ALE/{game}-v5", 2, seed=1, **options)
    env.reset()
    seen = play(env, 250)[-1][0]  # some games
    snapshot = env.take_snapshot()
    expected = play(env, 120, seed=1)
    fresh = make(f"ALE/{game}-v5", 2, seed=7, n_processes=2 if sticky == 0 else 1, **options)
    np.testing.assert_array_equal(fresh.restore_snapshot(snapshot), seen)
    assert_alike(expected, play(fresh, 120, seed=1))
    fresh.close()


@pytest.mark.slow
def test_no_game_remembers_the_one_before() -> None:
    """All of the paper: the first games of a seed are the same, whatever was played before."""
    (atari,) = (family for family in families() if family.name == "atari")
    assert atari.protocol is not None
    for game in atari.protocol.games:
        env = make(game, 1, seed=3)
        env.reset()
        first = play(env, 60)
        play(env, 400, seed=1)
        env.seed(3)
        env.reset()
        assert_alike(first, play(env, 60))


def test_actions_that_are_none_are_refused() -> None:
    env = make(BREAKOUT, 2)
    env.reset()
    for actions in ([0], [0, 0, 0], [4, 0], [0, -1], [0.5, 1]):
        with pytest.raises(InvalidValue, match=r"they must be 2 integers in \[0, 4\)"):
            env.step(actions)
    env.close()
    with pytest.raises(InvalidValue, match="the environments are closed: make new ones"):
        env.step([0, 0])


def change(snapshot: bytes, **parts: Any) -> bytes:
    return to_bytes(from_bytes(snapshot) | parts)


def test_a_snapshot_of_something_else_is_refused() -> None:
    env = make(BREAKOUT, 2, n_processes=2)
    env.reset()
    play(env, 3)
    good = env.take_snapshot()
    stored = from_bytes(good)
    for bad, reason in (
        ({"actions": stored["actions"] + 4}, "action is"),
        ({"steps": stored["steps"] + 1}, "other lengths"),
        ({"steps": np.array([7, -1])}, "other lengths"),
        ({"scores": stored["scores"] + 1}, "another way"),
        ({"numbers": stored["numbers"][:1]}, "2 games"),
        ({"observations": stored["observations"] + 1}, "another way"),
        ({"seed": -1}, "seed is -1"),
        ({"observations": stored["observations"].astype(np.int64)}, "2 games"),
        ({"seeds": stored["seeds"] + np.uint64(1)}, "another way"),
        ({"actions": [[1], 2]}, "2 games: its actions"),
    ):
        with pytest.raises(InvalidValue, match=reason):
            env.restore_snapshot(change(good, **bad))
    with pytest.raises(InvalidValue, match="not a snapshot, but a list"):
        env.restore_snapshot(b"[]")
    env.restore_snapshot(good)
    env.close()


def test_a_snapshot_of_an_older_version_has_one_seed() -> None:
    env = make(BREAKOUT, 2, seed=6)
    env.reset()
    seen = play(env, 20)[-1][0]
    stored = from_bytes(env.take_snapshot())
    older = {name: value for name, value in stored.items() if name != "seeds"} | {"seed": 6}
    fresh = make(BREAKOUT, 2)
    np.testing.assert_array_equal(fresh.restore_snapshot(to_bytes(older)), seen)
    assert_alike(play(fresh, 30), play(env, 30))


def pids_of(env: AtariVecEnv) -> list[int]:
    return [part._process.pid for part in env._parts]  # type: ignore[attr-defined]


def test_a_process_that_ends_is_reported() -> None:
    env = make(BREAKOUT, 2, n_processes=2)
    env.reset()
    os.kill(pids_of(env)[1], signal.SIGKILL)
    with pytest.raises(UserError, match=r"a process of emulators has ended \(exit code -9; .+\): make the"):
        play(env, 2)
    env.close()


def test_signals_of_the_terminal_do_not_reach_emulators() -> None:
    env = make(BREAKOUT, 2, n_processes=2)
    assert all(os.getpgid(pid) != os.getpgid(0) for pid in pids_of(env))
    env.close()


def test_an_environment_closes_at_once_in_a_program_that_has_forked() -> None:
    env = make(BREAKOUT, 2, n_processes=2)
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    began = time.monotonic()
    env.close()
    assert time.monotonic() - began < 10
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_after_an_interrupt_the_next_answers_are_the_next() -> None:
    one, two = (make(BREAKOUT, 2, seed=1, n_processes=2) for _ in range(2))
    for env in (one, two):
        env.reset()
        env.step_async(np.zeros(2, int))
    two.step_wait()  # the other one was interrupted before
    assert_alike(play(one, 8)[3:], play(two, 8)[3:])  # before, stacks are without the frame that no one saw
    one.close()
    two.close()


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cv2.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    make(BREAKOUT, 2, n_processes=2).close()


def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    """Whose program has no `__main__` guard."""
    program = tmp_path / "program.py"
    program.write_text(
        "import dae, sys, time\n"
        "env = dae.make_vec_env('Pong', 2, n_processes=2)\n"
        "env.reset()\n"
        "print(*(part._process.pid for part in env._parts), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def are_gone() -> bool:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 0)
                return False
        return True

    wait_until(are_gone, 20)


# Ids and options. ----------------------------------------------------------------------------------------------------


def test_the_papers_games_are_there_by_name() -> None:
    (atari,) = (family for family in families() if family.name == "atari")
    assert atari.protocol is not None
    assert len(atari.protocol.games) == 49
    for game in atari.protocol.games:
        atari.require_known(game)
        assert full_id(game.rpartition("-v")[0]) == game
    assert full_id("pong") == "ALE/Pong-v5"
    with pytest.raises(InvalidValue, match="choose MinAtar/Seaquest-v1 or ALE/Seaquest-v5"):
        full_id("Seaquest")


@pytest.mark.slow
def test_all_games_of_the_paper_play() -> None:
    (atari,) = (family for family in families() if family.name == "atari")
    assert atari.protocol is not None
    for game in atari.protocol.games:
        env = make(game, 1)
        env.reset()
        assert all(step[0].any() for step in play(env, 20)), game


@pytest.mark.parametrize(
    ("env_id", "options", "message"),
    [
        ("ALE/Pomg-v5", {}, "'ALE/Pomg-v5' is not known; did you mean ALE/Pong-v5"),
        ("Pnog", {}, "'Pnog' is not known; did you mean Pong?"),
        ("Pong", {"seed": -1}, "seed is -1: it must be an integer in"),
        ("Pong", {"wrapper_class": AtariWrapper, "noop_max": 3}, "noop_max is 3: with a wrapper_class of yours"),
        ("ALE/Joust-v5", {}, "'ALE/Joust-v5' is a game for several players"),
        ("Pong", {"backend": "sb3", "n_processes": 2}, "n_processes is 2: with backend 'sb3' there is one"),
        ("Pong", {"lives": 3}, "lives is not an option of ALE/Pong-v5; choose from backend, clip_reward"),
        ("Pong", {"sticky_action_prob": 2}, r"sticky_action_prob is 2: it must be in \[0, 1\]"),
        ("Pong", {"n_processes": 0}, "n_processes is 0: it must be an integer of at least 1"),
        ("Pong", {"render_mode": "human"}, "render_mode is 'human': it must be rgb_array"),
        ("Pong", {"backend": "envpool"}, "backend is 'envpool': it must be dae or sb3"),
    ],
)
def test_bad_input_is_refused(env_id: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        dae.make_vec_env(env_id, 1, **options)


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ale_py" else find(name))
    with pytest.raises(UserError, match=r"ALE/Pong-v5 needs ale_py, .*: pip install 'dae-rl\[atari\]'"):
        dae.make_vec_env("Pong", 1)


def test_an_evaluation_counts_whole_games() -> None:
    class Nothing:
        def predict(self, observations: Any, **_: Any) -> tuple[Any, None]:
            return np.zeros(len(observations), np.int64), None

    env = make(BREAKOUT, 1, max_episode_frames=400)
    scores, lengths = evaluate_policy(Nothing(), env, 2, return_episode_rewards=True)  # type: ignore[arg-type]
    assert scores == [0, 0]  # it does not move
    assert all(70 < length < 100 for length in lengths), lengths  # up to the limit; a life takes 23 steps


def test_pictures_have_the_colours_of_the_game() -> None:
    env = make(BREAKOUT, 1, render_mode="rgb_array", max_episode_frames=200)
    family = family_of(BREAKOUT)
    env.reset()
    picture = family.draw(env)
    assert picture.shape == (210, 160, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 6
    assert family.action_names(env) == ["noop", "fire", "right", "left"]
    assert family.draw_last(env, None) is None
    play(env, 60)
    last = family.draw_last(env, None)
    assert last is not None
    assert not np.array_equal(last, picture)
    theirs = dae.make_vec_env(BREAKOUT, 1, render_mode="rgb_array", backend="sb3")
    theirs.reset()
    assert family.draw(theirs).shape == (210, 160, 3)
    assert family.action_names(theirs) == family.action_names(env)
    assert family.draw_last(theirs, None) is None


@pytest.mark.slow
def test_separate_processes_of_stable_baselines3_make_games_too() -> None:
    env = dae.make_vec_env("Pong", 2, vec_env_cls=SubprocVecEnv)
    assert env.reset().shape == (2, 84, 84, 1)  # type: ignore[union-attr]
    env.close()


def test_the_start_of_many_emulators_shows_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.envs.atari.vec_env._QUIET_SECONDS", 0)
    make("Pong", 10)
    assert re.search(r"starting emulators: .* 0/10 ", capsys.readouterr().err)


def test_without_a_seed_a_reset_begins_the_next_games() -> None:
    one, two = (make(BREAKOUT, 2, seed=3) for _ in range(2))
    first, second = one.reset(), one.reset()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(two.reset(), first)
    np.testing.assert_array_equal(two.reset(), second)
    one.seed(3)
    np.testing.assert_array_equal(one.reset(), first)


def test_the_papers_ids_are_ours() -> None:
    """Also where ale-py has registered them for raw pictures."""
    assert full_id("BreakoutNoFrameskip-v4") == BREAKOUT
    assert dae.make_vec_env("PongNoFrameskip-v4", 1, n_processes=1).observation_space.shape == (4, 84, 84)
