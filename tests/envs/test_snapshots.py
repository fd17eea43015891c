"""Snapshots of gymnasium environments: exact, nothing but data, and refused where they cannot be exact."""

import json
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import dae
from dae.envs import family_of
from dae.envs.snapshots import play_on_alike, restore_snapshot, take_generators, take_snapshot
from dae.errors import UserError
from dae.serialization import NotData, encode, to_bytes


def play(env: VecEnv, steps: int) -> list[Any]:
    """Play with actions drawn from the environment's own action space; return all that is seen."""
    seen = []
    for _ in range(steps):
        actions = np.array([env.action_space.sample() for _ in range(env.num_envs)])
        observations, rewards, dones, infos = env.step(actions)
        seen.append(
            (np.array(observations), rewards.tolist(), dones.tolist(), [i.get("episode", {}).get("r") for i in infos])
        )
    return seen


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1", "FrozenLake-v1", "MinAtar/Seaquest-v1"])
def test_a_restored_environment_plays_on_as_the_first_did(env_id: str) -> None:
    family = family_of(env_id)
    first, second = (dae.make_vec_env(env_id, 3, seed=seed) for seed in (0, 1))
    first.action_space.seed(5)
    first.reset()
    second.reset()
    last = play(first, 30)[-1][0]
    snapshot = family.take_snapshot(first, last)
    first.action_space.seed(7)
    expected = play(first, 200)
    play(second, 11)  # whatever it did before is forgotten
    shown = family.restore_snapshot(second, snapshot)
    np.testing.assert_array_equal(shown, last)
    second.action_space.seed(7)
    for (observations, *rest), (expected_observations, *expected_rest) in zip(play(second, 200), expected, strict=True):
        np.testing.assert_array_equal(observations, expected_observations)
        assert rest == expected_rest
    assert any(any(dones) for _, _, dones, _ in expected) or env_id.startswith("Acrobot"), "it crosses a reset"


def test_a_snapshot_is_plain_json_and_leaves_out_what_does_not_change() -> None:
    env = dae.make_vec_env("CartPole-v1", 2, seed=0)
    content = json.loads(take_snapshot(env, env.reset()))
    assert set(content) == {"environments", "observations"}
    monitor, *_, cartpole = content["environments"][0]
    assert "rewards" in monitor
    assert not {"t_start", "episode_returns", "results_writer"} & set(monitor), "records of the clock and the past"
    assert {"state", "steps_beyond_terminated", "_np_random"} <= set(cartpole)
    assert not {"action_space", "observation_space", "spec"} & set(cartpole)


def test_what_cannot_be_read_is_refused() -> None:
    env = VecNormalize(dae.make_vec_env("CartPole-v1", 1))
    with pytest.raises(NotData, match="the state of a VecNormalize cannot be read"):
        take_snapshot(env, env.reset())


class Secretive(gym.Env[np.ndarray, int]):
    """Keeps its state where no one finds it: in an object, in a closure, in its class, or nowhere."""

    of_class = np.random.default_rng(4)

    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, where: str) -> None:
        self.where = where
        hidden = np.random.default_rng(3)
        self.draw = hidden.random if where == "closure" else (lambda: 0.5)
        self.draw_first = hidden.random
        if where == "object":
            self.holder = object()
        if where == "raises":
            self.draw = lambda: 1 / 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.where == "closure, at a reset":
            return np.array([self.draw_first()], np.float32), {}
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> Any:
        if self.where == "class":
            return np.array([self.of_class.random()], np.float32), 0.0, False, False, {}
        return np.array([self.draw()], np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("where", ["object", "closure", "closure, at a reset", "class", "raises"])
def test_environments_that_cannot_be_restored_are_found_out_by_trying(where: str) -> None:
    first, second = (sb3_make_vec_env(lambda: Secretive(where), 1, seed=seed) for seed in (0, 1))
    assert not play_on_alike(first, second)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "MinAtar/Breakout-v1"])
def test_environments_that_can_be_restored_are_found_out_too(env_id: str) -> None:
    assert family_of(env_id).can_be_restored(env_id)


def test_a_snapshot_of_another_number_of_environments_is_refused() -> None:
    two, three = (dae.make_vec_env("CartPole-v1", n, seed=0) for n in (2, 3))
    snapshot = take_snapshot(two, two.reset())
    with pytest.raises(ValueError, match="shorter"):
        restore_snapshot(three, snapshot)


@pytest.mark.parametrize(
    ("old", "new"), [(b"(4,)", b"(2,)"), (b"(4,), }             ", b"(1099511627776,), } "), (b"'<u8'", b"'|O8'")]
)
def test_a_snapshot_of_games_is_not_believed_about_its_size_and_kind(old: bytes, new: bytes) -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 4, seed=0)
    snapshot = family_of("MinAtar/Breakout-v1").take_snapshot(env, env.reset())
    assert old in snapshot
    with pytest.raises(UserError, match="it is not a snapshot of 4 of these games"):
        family_of("MinAtar/Breakout-v1").restore_snapshot(env, snapshot.replace(old, new))


class Shared(gym.Env[np.ndarray, int]):
    """Draws from the generators that the whole program shares."""

    observation_space = gym.spaces.Box(0, 1, (3,))
    action_space = gym.spaces.Discrete(2)

    def _draw(self) -> np.ndarray:
        return np.array([random.random(), np.random.random(), torch.rand(()).item()], np.float32)  # noqa: NPY002

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._draw(), {}

    def step(self, action: int) -> Any:
        return self._draw(), 0.0, random.random() < 0.1, False, {}


def test_shared_generators_can_be_restored_and_are_left_as_they_were() -> None:
    first, second = (sb3_make_vec_env(Shared, 1, seed=seed) for seed in (0, 1))
    before = take_generators()
    assert play_on_alike(first, second)
    assert to_bytes(take_generators()) == to_bytes(before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", "gone"), ("gravity", "down"), ("state", 3), ("_np_random", [1]), ("unheard_of", 1.0)),
        *(("screen", "x"), ("_np_random", None), ("state", encode(np.zeros(1000)))),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_sets_only_what_the_environment_has_itself(name: str, value: Any) -> None:
    env = dae.make_vec_env("CartPole-v1", 1, seed=0)
    content = json.loads(take_snapshot(env, env.reset()))
    content["environments"][0][-1][name] = value
    with pytest.raises(UserError, match=f"it would change {name} of a CartPoleEnv"):
        restore_snapshot(env, json.dumps(content).encode())
    assert callable(env.envs[0].unwrapped.step)


def test_how_an_environment_is_drawn_is_no_part_of_its_state() -> None:
    env = dae.make_vec_env("CartPole-v1", 1, seed=0)
    content = json.loads(take_snapshot(env, env.reset()))
    content["environments"][0][-1]["render_mode"] = "human"  # as older versions wrote it
    restore_snapshot(env, json.dumps(content).encode())
    assert env.envs[0].unwrapped.render_mode is None
