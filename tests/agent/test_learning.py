"""DAE learns: CartPole in seconds, and MinAtar Breakout better than GAE (slow)."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy

import dae

SEEDS = (0, 1, 2)


def test_with_the_defaults_one_cartpole_is_solved() -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", seed=0).learn(40_000)
    assert model.advantage == "dae"
    mean, _ = evaluate_policy(model, dae.make_vec_env("CartPole-v1", 4, seed=1), n_eval_episodes=20)
    assert mean >= 475


def breakout_score(advantage: str, seed: int) -> float:
    """Mean score of the last 100 episodes of 500,000 frames with 128 actors and the paper's settings."""
    torch.set_num_threads(1)
    env = dae.make_vec_env("MinAtar/Breakout-v1", 128, seed=seed)
    model = dae.PPO("CnnPolicy", env, seed=seed, **dae.paper_settings("minatar", advantage))
    model.learn(500_000)
    assert model.ep_info_buffer is not None
    assert len(model.ep_info_buffer) == 100
    return float(np.mean([episode["r"] for episode in model.ep_info_buffer]))


@pytest.mark.slow
def test_on_breakout_dae_is_at_least_twice_as_good_as_gae() -> None:
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        jobs = {(a, seed): pool.submit(breakout_score, a, seed) for seed in SEEDS for a in ("dae", "gae")}
        scores = {job: future.result() for job, future in jobs.items()}
    print(scores)
    for seed in SEEDS:
        assert scores["dae", seed] >= 10, scores
        assert scores["dae", seed] >= 2 * scores["gae", seed], scores
