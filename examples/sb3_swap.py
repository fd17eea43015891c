"""A Stable-Baselines3 program with one line changed.

python examples/sb3_swap.py
"""

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import LinearSchedule

from dae import PPO  # from stable_baselines3 import PPO


def train(total_timesteps: int = 150_000) -> float:
    """Train on CartPole and return the mean score of 20 episodes."""
    env = make_vec_env("CartPole-v1", n_envs=32, seed=0)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=128,
        batch_size=512,
        gamma=0.98,
        ent_coef=0.0,
        learning_rate=LinearSchedule(2e-3, 0.0, 1.0),
        clip_range=LinearSchedule(0.2, 0.0, 1.0),
        seed=0,
        device="cpu",
    )
    model.learn(total_timesteps, progress_bar=True)
    score, _ = evaluate_policy(model, make_vec_env("CartPole-v1", n_envs=4, seed=1), n_eval_episodes=20)
    print(f"mean score of 20 episodes: {score:.0f} of 500")
    return float(score)


if __name__ == "__main__":
    train()
