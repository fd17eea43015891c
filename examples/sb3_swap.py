"""One program, two imports: the same lines train with Stable-Baselines3's PPO and with ours, both with their defaults.

python examples/sb3_swap.py
"""

import numpy as np
import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import dae


def train(ppo: type, env_id: str = "CartPole-v1", total_timesteps: int = 40_000, seed: int = 0) -> float:
    """Train in one environment, print how the returns rose, and return the mean of 20 episodes."""
    model = ppo("MlpPolicy", env_id, seed=seed, device="cpu", stats_window_size=10_000)
    model.learn(total_timesteps, progress_bar=True)
    quarters = np.array_split([episode["r"] for episode in model.ep_info_buffer], 4)
    score, _ = evaluate_policy(model, make_vec_env(env_id, n_envs=4, seed=1), n_eval_episodes=20)
    means = ", ".join(f"{quarter.mean():.0f}" for quarter in quarters if len(quarter))
    print(f"{ppo.__module__}: quarters of its episodes {means}; mean of 20 episodes at the end {score:.0f}")
    return float(score)


if __name__ == "__main__":
    train(stable_baselines3.PPO)
    train(dae.PPO)
