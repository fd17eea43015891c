"""Without shared randomness: a random policy meets the same distribution of episodes in both implementations."""

import numpy as np
import pytest
from minatar import Environment
from scipy.stats import ks_2samp

from dae.envs.minatar import GAMES, MinAtarBatch

EPISODES = 10_000
OPTIONS = {"sticky_action_prob": 0.1, "difficulty_ramping": True}


def our_episodes(game: str) -> tuple[np.ndarray, np.ndarray]:
    """The first ten episodes of each of 1,000 environments: all of them, so that short ones are not favoured."""
    batch = MinAtarBatch(game, 1000, seed=0, use_minimal_action_set=False, **OPTIONS)
    rng = np.random.default_rng(0)
    returns: list[list[float]] = [[] for _ in range(1000)]
    lengths: list[list[int]] = [[] for _ in range(1000)]
    while min(map(len, returns)) < EPISODES // 1000:
        step = batch.step(rng.integers(6, size=1000))
        for i, r, n in zip(step.ended, step.episode_returns, step.episode_lengths, strict=True):
            returns[i].append(r)
            lengths[i].append(n)
    return np.concatenate([r[:10] for r in returns]), np.concatenate([n[:10] for n in lengths])


def package_episodes(game: str) -> tuple[np.ndarray, np.ndarray]:
    environment = Environment(game, **OPTIONS)
    environment.seed(1)
    rng = np.random.default_rng(1)
    returns, lengths = np.zeros(EPISODES), np.zeros(EPISODES, int)
    for episode in range(EPISODES):
        environment.reset()
        terminal = False
        actions: list[int] = []
        while not terminal:
            actions = actions or rng.integers(6, size=512).tolist()
            reward, terminal = environment.act(actions.pop())
            returns[episode] += reward
            lengths[episode] += 1
    return returns, lengths


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_returns_and_lengths_have_the_packages_distribution(game: str) -> None:
    ours, theirs = our_episodes(game), package_episodes(game)
    for mine, reference in zip(ours, theirs, strict=True):
        assert len(mine) == len(reference) == EPISODES
        assert ks_2samp(mine, reference, method="asymp").pvalue > 1e-3
