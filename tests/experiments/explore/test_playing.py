"""Episodes for the explorer: what the agent said is what it says, and what follows is what really follows."""

from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv

import dae
from dae.envs import family_of
from dae.envs.restoring import restorable
from dae.experiments.explore.asking import ask, decisions_to_check, look_ahead
from dae.experiments.explore.pictures import PictureBook
from dae.experiments.explore.playing import Played, _of_allowed, play_episode
from dae.experiments.monte_carlo import Simulator
from dae.explorer.credit import decompose
from dae.explorer.data import Episode, Grid, Images, Segment
from dae.theory import action_values, random_mdp, random_policy, state_values
from tests.finite import index_of, make_env, table_agent


class Watched:
    """Environments that remember what they showed and gave."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.seen, self.rewards = env, list[Any](), list[float]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self) -> Any:
        self.seen = [self.env.reset()]
        return self.seen[0]

    def step(self, actions: Any) -> Any:
        step = self.env.step(actions)
        self.seen.append(step[0])
        self.rewards.append(float(step[1][0]))
        return step


def play(model: dae.PPO, env: Any, env_id: str, **options: Any) -> Played:
    settings = {"seed": 3, "greedy": False, "longest": 60, "drawn": True} | options
    return play_episode(model, family_of(env_id), env, restorable(getattr(env, "env", env)), **settings)


def test_numbers_are_those_of_the_agent_and_of_the_game() -> None:
    env = Watched(dae.make_vec_env("MinAtar/Breakout-v1", 1, render_mode="rgb_array"))
    model = dae.PPO("CnnPolicy", dae.make_vec_env("MinAtar/Breakout-v1", 2), n_steps=8, batch_size=16, seed=0)
    played = play(model, env, "MinAtar/Breakout-v1")
    episode = played.episode
    steps = len(episode.actions)
    credit = model.advantages(np.concatenate(env.seen[:steps]))
    np.testing.assert_allclose(episode.values, credit.values, rtol=1e-5)
    np.testing.assert_allclose(episode.probabilities, credit.probabilities, rtol=1e-5)
    np.testing.assert_allclose(episode.advantages, credit.advantages, atol=1e-6)
    np.testing.assert_array_equal(episode.rewards, env.rewards)
    assert episode.ended
    assert episode.segments == [Segment(0, steps, True, 0.0)]
    assert episode.score == episode.scores[-1] == sum(env.rewards)
    assert isinstance(episode.picture, Grid)
    assert episode.picture.cells.shape == (steps + 1, 10, 10)
    found = decompose(episode, model.gamma, episode.segments[0])
    recomputed = sum(model.gamma**t * reward for t, reward in enumerate(env.rewards))
    assert found.total == pytest.approx(recomputed)
    assert found.value + found.choices.sum() + found.luck.sum() == pytest.approx(recomputed, abs=1e-5)
    other = dae.make_vec_env("MinAtar/Breakout-v1", 3)
    other.reset()
    for t in (0, steps - 1):
        np.testing.assert_array_equal(restorable(other).put_states([played.states[t]], [1])[0], env.seen[t][0])


def test_an_episode_that_goes_on_is_cut_and_bootstraps() -> None:
    env = Watched(dae.make_vec_env("CartPole-v1", 1, render_mode="rgb_array"))
    model = dae.PPO("MlpPolicy", dae.make_vec_env("CartPole-v1", 2), n_steps=8, batch_size=16, seed=0)
    episode = play(model, env, "CartPole-v1", longest=5).episode
    (segment,) = episode.segments
    assert not episode.ended
    assert not segment.terminated
    assert segment.bootstrap == pytest.approx(float(model.advantages(env.seen[5]).values[0]), rel=1e-5)
    assert isinstance(episode.picture, Images)
    assert (episode.picture.size, len(episode.picture.index)) == ((320, 213), 5)


def test_looking_ahead_finds_the_advantages_of_exact_values() -> None:
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, n_states=6, n_actions=3, branching=1)  # the only chance is in the policy
    policy = random_policy(rng, mdp)
    values = state_values(mdp, policy)
    model = table_agent(mdp, policy, values=values, advantage="gae", gamma=mdp.gamma, n_steps=8, batch_size=8, seed=0)
    played = play(model, make_env(mdp, 1), "none", drawn=False)
    assert played.episode.advantages is None
    found = look_ahead(Simulator(model, make_env(mdp, 7)), played, mdp.gamma, 0)
    met = [index_of(state) for state in played.states]
    expected = (action_values(mdp, policy) - values[:, None])[met]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_if_agrees_with_theory() -> None:
    rng = np.random.default_rng(2)
    mdp = random_mdp(rng, n_states=6, n_actions=3)
    policy = random_policy(rng, mdp)
    exact = action_values(mdp, policy)
    model = table_agent(mdp, policy, critic=exact, gamma=mdp.gamma, correction=0.0, row_length=None, seed=0)
    played = [play(model, make_env(mdp, 1), "none", drawn=False, seed=seed, longest=20) for seed in range(3)]
    decisions = decisions_to_check([each.episode for each in played], 4)
    assert len(decisions) == 4
    options = {"rollouts": 100, "horizon": 80, "gamma": mdp.gamma, "seed": 0}
    truths = ask(Simulator(model, make_env(mdp, 32)), played, decisions, **options, watch=lambda ended: None)
    assert sorted((k, truth.step) for k, each in truths.items() for truth in each) == decisions
    for k, of_episode in truths.items():
        for truth in of_episode:
            state = index_of(played[k].states[truth.step])
            assert (np.abs(truth.q - exact[state]) < 4.5 * truth.q_error + 1e-6).all()
            assert (
                np.abs(truth.advantages - (exact - (policy * exact).sum(1)[:, None])[state]) < 4.5 * truth.errors + 1e-6
            ).all()


def test_forbidden_actions_are_neither_best_nor_at_stake() -> None:
    advantages = np.array([[3.0, 1.0, 2.0], [-5.0, 1.0, 2.0]], np.float32)
    allowed = np.array([[False, True, True], [True, True, True]])
    np.testing.assert_array_equal(_of_allowed(advantages, allowed), [[1, 1, 2], [-5, 1, 2]])
    assert _of_allowed(advantages, None) is advantages


def episode_of(advantages: list[list[float]], actions: list[int]) -> Episode:
    steps = len(actions)
    zeros = np.zeros(steps)
    table = np.array(advantages, np.float32)
    return Episode(
        0, 0.0, True, np.array(actions), zeros, zeros, zeros, table, table, [Segment(0, steps, True, 0.0)], None, []
    )


def test_mistakes_gains_and_other_preferences_are_checked_in_turn_and_apart_from_each_other() -> None:
    none = [0, 0]
    first = episode_of([[-5, 1], none, none, none, [0, 4], [9, 0], none, none, none, [-4, 0]], [0] * 10)
    second = episode_of([[0, 7], none], [0, 0])
    # The largest mistake is step 0 (−5), the largest gain step 5 (9), the largest other preference in the second (7).
    assert decisions_to_check([first, second], 3) == [(0, 0), (0, 5), (1, 0)]
    # Step 9 (−4) is a mistake too; step 4, where another action has 4, is next to step 5.
    assert decisions_to_check([first, second], 9) == [(0, 0), (0, 5), (0, 9), (1, 0)]
    assert decisions_to_check([first, second], 0) == []


def test_pictures_of_cells_become_a_grid_and_others_images() -> None:
    rng = np.random.default_rng(0)
    small = rng.choice(np.array([0, 80, 255], np.uint8), (3, 4, 5, 1)).repeat(3, -1)
    book = PictureBook(6)
    for cells in small:
        book.add(cells.repeat(6, 0).repeat(6, 1))
    grid = book.bound()
    assert isinstance(grid, Grid)
    palette = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in grid.palette], np.uint8)
    np.testing.assert_array_equal(palette[grid.cells], small)
    album = PictureBook()
    for k in (0, 1, 0):
        album.add(np.full((480, 640, 3), 90 * k, np.uint8))
    images = album.bound()
    assert isinstance(images, Images)
    assert (images.size, images.index.tolist(), len(images.images)) == ((320, 240), [0, 1, 0], 2)
    assert all(image.startswith(b"RIFF") for image in images.images)
    assert PictureBook().bound() is None
