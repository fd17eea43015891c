"""PPO with Direct Advantage Estimation in one file: everything that happens, from top to bottom.

Of this package it uses `dae.center` and `dae.dae_loss`; copy the file and change what you like.

    python examples/cleanrl_style.py                                      # CartPole, solved in under a minute
    python examples/cleanrl_style.py --env-id MinAtar/Breakout-v1 --n-envs 128 --total-frames 500000 \
        --learning-rate 2.5e-4 --clip 0.1 --n-epochs 6 --ent-coef 0.01 --gamma 0.99
"""

import time
from collections import deque
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import tyro
from gymnasium.vector import AutoresetMode
from torch import Tensor, nn

import dae


@dataclass(frozen=True)
class Args:
    env_id: str = "CartPole-v1"
    """any gymnasium id with discrete actions; MinAtar/... ids come with dae"""
    seed: int = 0
    total_frames: int = 200_000
    """frames of all actors together"""
    n_envs: int = 32
    """actors that play side by side"""
    n_steps: int = 128
    """steps of each actor between two updates: one row of the rollout"""
    rows: int = 4
    """rows in a minibatch"""
    n_epochs: int = 6
    learning_rate: float = 2e-3
    """falls to 0 over the run, as does the clip range"""
    clip: float = 0.2
    gamma: float = 0.98
    ent_coef: float = 0.0
    critic_coef: float = 1.5
    device: str = "cpu"


def layer(module: nn.Linear | nn.Conv2d, gain: float) -> nn.Linear | nn.Conv2d:
    nn.init.orthogonal_(module.weight, gain)
    nn.init.zeros_(module.bias)
    return module


def make_trunk(shape: tuple[int, ...]) -> nn.Sequential:
    """Build the paper's network for MinAtar's planes, and two hidden layers for vectors."""
    if len(shape) == 3:
        return nn.Sequential(
            *(layer(nn.Conv2d(shape[0], 32, 3), 2**0.5), nn.ReLU()),
            *(layer(nn.Conv2d(32, 32, 3), 2**0.5), nn.ReLU(), nn.Flatten()),
            *(layer(nn.Linear(32 * (shape[1] - 4) * (shape[2] - 4), 256), 2**0.5), nn.ReLU()),
        )
    return nn.Sequential(
        *(nn.Flatten(), layer(nn.Linear(int(np.prod(shape)), 256), 2**0.5), nn.Tanh()),
        *(layer(nn.Linear(256, 256), 2**0.5), nn.Tanh()),
    )


class Agent(nn.Module):
    """Three heads: the policy, the value, and the advantages of all actions."""

    def __init__(self, observation_space: gym.spaces.Box, n_actions: int) -> None:
        super().__init__()
        shape = observation_space.shape
        self.trunk = make_trunk(shape)
        # What convolutions see is worth sharing; small networks learn more steadily apart.
        self.critic_trunk = self.trunk if len(shape) == 3 else make_trunk(shape)
        self.policy = layer(nn.Linear(256, n_actions), 0.01)
        self.value = layer(nn.Linear(256, 1), 1.0)
        # Small at first: the loss sums advantages along a trajectory, and a sum of noise is a lot of noise.
        self.advantage = layer(nn.Linear(256, n_actions), 0.1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.trunk(observations.float())
        log_probs = self.policy(features).log_softmax(-1)
        if self.critic_trunk is not self.trunk:
            features = self.critic_trunk(observations.float())
        return log_probs, self.value(features).squeeze(-1), self.advantage(features)


def train(args: Args) -> float:
    """Train an agent and return the mean score of the last 100 episodes."""
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    envs = make_envs(args)
    n_actions = int(envs.single_action_space.n)
    agent = Agent(envs.single_observation_space, n_actions).to(args.device)
    optimizer = torch.optim.Adam(agent.parameters(), eps=1e-5)

    # The rollout: one row an actor.
    def storage(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(args.n_envs, args.n_steps, *shape, dtype=dtype, device=args.device)

    dtype = torch.from_numpy(np.empty(0, envs.single_observation_space.dtype)).dtype
    observations = storage(*envs.single_observation_space.shape, dtype=dtype)
    actions = storage(dtype=torch.int64)
    old_log_probs = storage(n_actions)  # of all actions: advantages are centred under the policy that acted
    rewards, bootstrap = storage(), storage()
    terminated, truncated = storage(dtype=torch.bool), storage(dtype=torch.bool)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, device=args.device)

    seen, _ = envs.reset(seed=args.seed)
    scores: deque[float] = deque(maxlen=100)
    running = np.zeros(args.n_envs)
    iterations = max(1, args.total_frames // (args.n_envs * args.n_steps))
    start = time.perf_counter()

    for iteration in range(iterations):
        left = 1 - iteration / iterations
        optimizer.param_groups[0]["lr"] = left * args.learning_rate
        clip = left * args.clip

        # 1. Play.
        with torch.no_grad():
            for t in range(args.n_steps):
                observations[:, t] = tensor(seen)
                old_log_probs[:, t], _, _ = agent(observations[:, t])
                actions[:, t] = torch.multinomial(old_log_probs[:, t].exp(), 1).squeeze(-1)
                seen, reward, terminal, cut, info = envs.step(actions[:, t].cpu().numpy())
                rewards[:, t], terminated[:, t], truncated[:, t] = tensor(reward), tensor(terminal), tensor(cut)
                running += reward
                ended = terminal | cut
                scores.extend(running[ended])
                running[ended] = 0
                # Where a time limit cuts an episode, the value of its last state stands for what would have followed.
                if cut.any():
                    last = np.stack([info["final_obs"][i] for i in np.flatnonzero(cut)])
                    bootstrap[tensor(cut), t] = agent(tensor(last))[1]
            # So it does where the rollout ends.
            bootstrap[:, -1] = torch.where(truncated[:, -1], bootstrap[:, -1], agent(tensor(seen))[1])

        # 2. Learn. Minibatches are whole rows: the loss follows a trajectory from each step to its end.
        for _ in range(args.n_epochs):
            for rows in np.array_split(rng.permutation(args.n_envs), -(-args.n_envs // args.rows)):
                log_probs, values, f = agent(observations[rows].flatten(0, 1))
                shape = (len(rows), args.n_steps)
                log_probs, values, f = log_probs.view(*shape, -1), values.view(shape), f.view(*shape, -1)
                taken, mu = actions[rows].unsqueeze(-1), old_log_probs[rows].exp()

                # The estimator: the network's own advantages, centred, so that the policy's average is 0 ...
                all_advantages = dae.center(f, mu)
                advantages = all_advantages.gather(-1, taken).squeeze(-1)
                # ... and learned by making their sum explain the return.
                critic_loss = dae.dae_loss(
                    rewards[rows],
                    advantages,
                    values,
                    bootstrap=bootstrap[rows],
                    terminated=terminated[rows],
                    truncated=truncated[rows],
                    gamma=args.gamma,
                )

                # PPO, with advantages brought to scale 1.
                scale = (mu * all_advantages**2).sum(-1).mean().sqrt() + 1e-5
                weights = (advantages / scale).detach()
                log_ratio = (log_probs - old_log_probs[rows]).gather(-1, taken).squeeze(-1)
                ratio = log_ratio.exp()
                policy_loss = -torch.min(ratio * weights, ratio.clamp(1 - clip, 1 + clip) * weights).mean()
                entropy = -(log_probs.exp() * log_probs).sum(-1).mean()

                loss = policy_loss - args.ent_coef * entropy + args.critic_coef * critic_loss
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        if iteration % max(1, iterations // 10) == 0 or iteration == iterations - 1:
            frames = (iteration + 1) * args.n_envs * args.n_steps
            score = f"{np.mean(scores):.2f}" if scores else "no episode yet"
            rate = frames / (time.perf_counter() - start)
            print(f"{frames:>9} frames  {rate:>6.0f} frames/s  last {len(scores)} episodes: {score}", flush=True)

    envs.close()
    return float(np.mean(scores)) if scores else float("nan")


def make_envs(args: Args) -> gym.vector.VectorEnv:
    """Environments that start a new episode in the step that ends one, and show the last state in `final_obs`."""
    if args.env_id.startswith("MinAtar/"):
        return gym.make_vec(args.env_id, args.n_envs, vectorization_mode="vector_entry_point")
    same_step = {"autoreset_mode": AutoresetMode.SAME_STEP}
    return gym.make_vec(args.env_id, args.n_envs, vectorization_mode="sync", vector_kwargs=same_step)


if __name__ == "__main__":
    train(tyro.cli(Args, description=__doc__))
