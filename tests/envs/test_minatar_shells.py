"""The environments that users meet, each against its model: gymnasium's, its vectors, and Stable-Baselines3's."""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3
from stable_baselines3.common.env_util import make_vec_env as make_with_sb3
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import dae
from dae.envs.minatar import MinAtarEnv, MinAtarVectorEnv
from dae.envs.minatar.family import MINATAR_IDS

OPTIONS: dict[str, Any] = {"sticky_action_prob": 0.1, "difficulty_ramping": True, "max_episode_steps": 20}


# gymnasium takes v0, with all six actions, for an older version of v1.
@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
@pytest.mark.parametrize("env_id", MINATAR_IDS)
def test_gymnasium_and_sb3_accept_the_single_environment(env_id: str) -> None:
    env = gym.make(env_id, render_mode="rgb_array")
    check_env(env.unwrapped)
    check_env_for_sb3(env.unwrapped, warn=False)
    env.reset(seed=0)
    assert env.render().shape == (240, 240, 3)
    expected = 6 if env_id.endswith("v0") else {"A": 5, "B": 3, "F": 3, "S": 6}[env_id[8]]
    assert env.action_space.n == (4 if env_id == "MinAtar/SpaceInvaders-v1" else expected)


def test_ids_are_registered_by_importing_the_package_alone() -> None:
    code = "import dae, gymnasium; print(gymnasium.make('MinAtar/Asterix-v1').reset(seed=0)[0].shape)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "(4, 10, 10)\n"


def test_making_a_vector_by_id_takes_the_compiled_batch() -> None:
    env = gym.make_vec("MinAtar/Seaquest-v1", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(env.unwrapped, MinAtarVectorEnv)
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space


def test_the_single_environment_plays_as_the_first_of_a_batch() -> None:
    single, vector = MinAtarEnv("seaquest", **OPTIONS), MinAtarVectorEnv("seaquest", 4, **OPTIONS)
    observation, _ = single.reset(seed=11)
    observations, _ = vector.reset(seed=11)
    rng = np.random.default_rng(0)
    for _ in range(500):
        np.testing.assert_array_equal(observation, observations[0])
        actions = rng.integers(6, size=4)
        observation, reward, terminated, truncated, _ = single.step(actions[0])
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        assert (reward, terminated, truncated) == (rewards[0], terminations[0], truncations[0])
        if terminated or truncated:
            np.testing.assert_array_equal(observation, infos["final_obs"][0])
            with pytest.raises(gym.error.ResetNeeded, match="call reset"):
                single.step(0)
            observation, _ = single.reset()


@pytest.mark.parametrize("game", ["breakout", "asterix"])
def test_the_vector_environment_equals_gymnasiums_own_vector_of_single_ones(game: str) -> None:
    ours = MinAtarVectorEnv(game, 6, **OPTIONS)
    theirs = SyncVectorEnv([lambda: MinAtarEnv(game, **OPTIONS)] * 6, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    seeds = [5, 3, 8, 1, 9, 2]
    np.testing.assert_array_equal(ours.reset(seed=seeds)[0], theirs.reset(seed=seeds)[0])
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(300):
        actions = rng.integers(ours.single_action_space.n, size=6)
        mine, reference = ours.step(actions), theirs.step(actions)
        for one, other in zip(mine[:4], reference[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        assert ("final_obs" in mine[4]) == ("final_obs" in reference[4])
        if "final_obs" in mine[4]:
            mask = mine[4]["_final_obs"]
            np.testing.assert_array_equal(mask, reference[4]["_final_obs"])
            for one, other in zip(mine[4]["final_obs"][mask], reference[4]["final_obs"][mask], strict=True):
                np.testing.assert_array_equal(one, other)
            ended += mask.sum()
    assert ended > 10


def test_gymnasiums_statistics_wrapper_agrees_with_our_own() -> None:
    env = RecordEpisodeStatistics(MinAtarVectorEnv("breakout", 8))
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(100):
        *_, infos = env.step(rng.integers(3, size=8))
        if "final_info" in infos:
            mask = infos["_final_info"]
            ours = infos["final_info"]["episode"]
            np.testing.assert_array_equal(ours["r"][mask], infos["episode"]["r"][mask])
            np.testing.assert_array_equal(ours["l"][mask], infos["episode"]["l"][mask])
            checked += mask.sum()
    assert checked > 20


def test_reset_mask_restarts_only_what_it_names() -> None:
    env = MinAtarVectorEnv("freeway", 4)
    env.reset(seed=0)
    for _ in range(30):
        env.step(np.ones(4, int))
    before = env.get_state()
    mask = np.array([False, True, False, True])
    env.reset(options={"reset_mask": mask})
    after = env.get_state()
    np.testing.assert_array_equal(after[~mask], before[~mask])
    assert (after["episode_length"][mask] == 0).all()


@pytest.mark.parametrize("game", ["Breakout", "Freeway", "Seaquest"])
def test_the_vec_env_equals_a_dummy_vec_env_of_monitored_environments(game: str) -> None:
    """Row by row: environment i of the batch, and a single one that got its random stream."""
    n = 5
    ours = dae.make_vec_env(f"MinAtar/{game}-v1", n, seed=3, **OPTIONS)
    ours.reset()
    snapshot = ours.get_state()

    def monitored() -> Monitor:
        return Monitor(gym.make(f"MinAtar/{game}-v1", **OPTIONS))

    theirs = DummyVecEnv([monitored] * n)
    theirs.reset()
    for env, state in zip(theirs.envs, snapshot, strict=True):
        env.unwrapped.set_state(state)
    rng = np.random.default_rng(0)
    ended, cut = 0, 0
    for _ in range(200):
        actions = rng.integers(ours.action_space.n, size=n)
        observations, rewards, dones, infos = ours.step(actions)
        expected = theirs.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(dones, expected[2])
        assert rewards.dtype == expected[1].dtype
        for mine, reference, done in zip(infos, expected[3], dones, strict=True):
            assert mine.get("TimeLimit.truncated", False) == reference["TimeLimit.truncated"]
            assert ("terminal_observation" in mine) == ("terminal_observation" in reference) == done
            if done:
                np.testing.assert_array_equal(mine["terminal_observation"], reference["terminal_observation"])
                assert {k: mine["episode"][k] for k in "rl"} == {k: reference["episode"][k] for k in "rl"}
                assert mine["episode"]["t"] >= 0
                ended += 1
                cut += mine["TimeLimit.truncated"]
    assert ended >= 20
    assert cut > 0


def test_stable_baselines3_trains_evaluates_and_wraps() -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 8, seed=0)
    model = PPO("MlpPolicy", VecNormalize(env, norm_obs=False), n_steps=16, batch_size=32, n_epochs=1, seed=0)
    model.learn(256)
    assert len(model.ep_info_buffer) > 0
    mean, _ = evaluate_policy(model, dae.make_vec_env("MinAtar/Breakout-v1", 4, seed=1), n_eval_episodes=8)
    assert mean >= 0


def test_the_seed_of_a_model_reaches_the_games() -> None:
    env = dae.make_vec_env("MinAtar/Asterix-v1", 4, seed=0)
    env.seed(123)
    env.reset()
    other = dae.make_vec_env("MinAtar/Asterix-v1", 4, seed=123)
    other.reset()
    np.testing.assert_array_equal(env.get_state(), other.get_state())


@pytest.mark.parametrize("seed", range(5))
def test_one_seed_is_one_game_through_every_door(seed: int) -> None:
    single = gym.make("MinAtar/Freeway-v1").reset(seed=seed)[0]
    vector = gym.make_vec("MinAtar/Freeway-v1", num_envs=3, vectorization_mode="vector_entry_point").reset(seed=seed)[0]
    vec_env = dae.make_vec_env("MinAtar/Freeway-v1", 3, seed=seed).reset()
    np.testing.assert_array_equal(single, vec_env[0])
    np.testing.assert_array_equal(vector, vec_env)


def test_the_last_picture_of_an_episode_shows_its_last_state() -> None:
    env = MinAtarEnv("breakout", render_mode="rgb_array")
    env.reset(seed=0)
    over = False
    while not over:
        observation, _, over, _, _ = env.step(0)
    np.testing.assert_array_equal(env.render(), env.batch.render(observation[None])[0])
    assert (env.render() != env.batch.render()[0]).any()


def test_ids_that_another_package_has_taken_are_announced() -> None:
    code = "import warnings, minatar.gym; minatar.gym.register_envs(); import dae"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "registered by another package" in result.stderr


def test_any_gymnasium_id_works_through_the_same_door() -> None:
    env = dae.make_vec_env("CartPole-v1", 3, seed=0)
    reference = make_with_sb3("CartPole-v1", 3, seed=0)
    np.testing.assert_array_equal(env.reset(), reference.reset())
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert dae.make_vec_env("MountainCar-v0", 1, goal_velocity=0.01).get_attr("unwrapped")[0].goal_velocity == 0.01


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("MinAtar/Breakut-v1", 2), {}, "did you mean MinAtar/Breakout-v1"),
        (("CartPol-v1", 2), {}, "did you mean CartPole-v1"),
        (("qqqq", 2), {}, "environment 'qqqq' is not known"),
        (("MinAtar/Breakout-v1", 0), {}, "n_envs is 0"),
        (("CartPole-v1", 0), {}, "n_envs is 0"),
        (("CartPole-v1", True), {}, "n_envs is True"),
        (("MinAtar/Breakout-v1", 2), {"sticky": 0.1}, "sticky is not an option of MinAtar/Breakout-v1; choose from"),
        (("MinAtar/Breakout-v1", 2), {"render_mode": "human"}, "render_mode='human' is not known"),
    ],
)
def test_make_vec_env_refuses_what_it_cannot_make(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dae.make_vec_env(*arguments, **options)


def test_vec_env_gives_pictures_and_keeps_its_options_to_itself() -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 4, seed=0, render_mode="rgb_array")
    assert env.render().shape == (480, 480, 3)
    assert env.get_attr("game") == ["breakout"] * 4
    with pytest.raises(AttributeError, match="cannot be set"):
        env.set_attr("game", "pong")
    with pytest.raises(AttributeError, match="cannot be called"):
        env.env_method("reset")
    with pytest.raises(ValueError, match="render_mode='x'"):
        MinAtarEnv("breakout", render_mode="x")
