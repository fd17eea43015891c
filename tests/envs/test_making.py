"""`make_vec_env` takes what Stable-Baselines3's takes, and ids with modules."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import dae
from dae.envs import family_of
from dae.errors import InvalidValue, UserError

OWN = "tests.envs.worlds:Corridor-v0"


def play(env: Any, steps: int = 60) -> list[Any]:
    rng = np.random.default_rng(0)
    shown = [env.reset()]
    for _ in range(steps):
        observations, rewards, dones, _ = env.step(rng.integers(env.action_space.n, size=env.num_envs))
        shown += [observations, rewards, dones]
    env.close()
    return shown


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"env_kwargs": {"is_slippery": False}},
        {"start_index": 3},
        {"wrapper_class": gym.wrappers.TimeLimit, "wrapper_kwargs": {"max_episode_steps": 7}},
    ],
    ids=["plain", "env_kwargs", "start_index", "wrapper"],
)
def test_the_arguments_mean_what_they_mean_in_stable_baselines3(options: dict[str, Any]) -> None:
    ours = play(dae.make_vec_env("FrozenLake-v1", 2, 5, **options))
    theirs = play(sb3_make_vec_env("FrozenLake-v1", 2, 5, **options))
    assert all(np.array_equal(one, two) for one, two in zip(ours, theirs, strict=True))


def test_positions_are_those_of_stable_baselines3(tmp_path: Path) -> None:
    arguments = (
        "CartPole-v1",
        1,
        0,
        2,
        str(tmp_path),
        gym.wrappers.TimeAwareObservation,
        {"sutton_barto_reward": True},
    )
    env = dae.make_vec_env(*arguments)  # type: ignore[arg-type]
    shown = play(env)
    assert shown[0].shape == (1, 5)
    assert {float(reward[0]) for reward in shown[2::3]} == {0.0, -1.0}
    assert len(load_results(str(tmp_path))) == sum(int(done[0]) for done in shown[3::3])
    assert [path.name for path in tmp_path.iterdir()] == ["2.monitor.csv"]


def test_a_wrapper_around_minatar_makes_separate_games_with_the_same_observations() -> None:
    wrapped = dae.make_vec_env(
        "MinAtar/Breakout-v1", 2, wrapper_class=gym.wrappers.TimeLimit, wrapper_kwargs={"max_episode_steps": 9}
    )
    assert isinstance(wrapped, DummyVecEnv)
    batched = dae.make_vec_env("MinAtar/Breakout-v1", 2)
    assert wrapped.observation_space == batched.observation_space
    assert wrapped.reset().shape == batched.reset().shape
    lengths = [step for step in range(1, 30) if wrapped.step(np.zeros(2, int))[2].all()]
    assert lengths[0] <= 9


@pytest.mark.parametrize("env", [OWN, "class", "function"])
def test_environments_of_ones_own(env: str) -> None:
    from tests.envs.worlds import Corridor

    made = dae.make_vec_env({"class": Corridor, "function": lambda **kw: Corridor(**kw)}.get(env, env), 3, length=2)
    made.reset()
    made.step(np.ones(3, int))
    _, rewards, dones, _ = made.step(np.ones(3, int))
    assert rewards.tolist() == [1, 1, 1]
    assert dones.all()


def test_another_process_imports_the_module_too() -> None:
    env = dae.make_vec_env(OWN, 1, vec_env_cls=SubprocVecEnv, length=1)
    env.reset()
    assert env.step(np.ones(1, int))[1].tolist() == [1]
    env.close()


def test_a_module_is_imported_by_who_asks_for_it_only() -> None:
    code = (
        "import sys, dae; from dae.envs import family_of; from dae.runs import RunSettings;"
        f"family_of({OWN!r}); RunSettings(env={OWN!r}).require_consistent();"
        "assert 'tests.envs.worlds' not in sys.modules;"
        f"dae.make_vec_env({OWN!r}); assert 'tests.envs.worlds' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_family_of_an_id_with_a_module_is_that_of_the_id() -> None:
    assert family_of("some.module:MinAtar/Breakout-v1").name == "minatar"
    assert dae.make_vec_env("tests.envs.worlds:MinAtar/Breakout-v1").observation_space.shape == (4, 10, 10)


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("no.such.module:Maze-v0", {}, "importing no.such.module failed: ModuleNotFoundError"),
        ("../evil:Maze-v0", {}, "environment '../evil:Maze-v0' is not known"),
        ("tests.envs.worlds:Coridor-v0", {}, "'Coridor-v0' is not known; did you mean Corridor-v0"),
        (OWN, {"width": 3}, "cannot be made: TypeError"),
        ("CartPole-v1", {"n_envs": 0}, "n_envs is 0: it must be an integer of at least 1"),
    ],
)
def test_mistakes_are_one_line(env: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((UserError, InvalidValue), match=message):
        dae.make_vec_env(env, **options)
