"""PPO on MinAtar: our update against the bare network, iterations against Stable-Baselines3, and their memory."""

import itertools
import subprocess
import sys
import time

import gymnasium as gym
import minatar.gym as package
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from torch import Tensor, nn

import dae
from benchmarks.timing import answer, best_seconds, in_turns
from dae.envs.minatar import GAMES

N_STEPS, BATCH = 128, 256
GAE = {
    "n_steps": N_STEPS,
    "batch_size": BATCH,
    "n_epochs": 4,
    "learning_rate": 2.5e-4,
    "clip_range": 0.1,
    "ent_coef": 0.01,
    "seed": 0,
    "device": "cpu",
}
MINIBATCHES = 16


class ChannelsFirst(gym.ObservationWrapper):
    """The package's environment with the axes that PyTorch convolves."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        height, width, channels = env.observation_space.shape
        self.observation_space = gym.spaces.Box(0, 1, (channels, height, width), np.bool_)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return np.moveaxis(observation, -1, 0)


class PlainCNN(BaseFeaturesExtractor):
    """The same network as one writes it first."""

    def __init__(self, observation_space: gym.spaces.Box) -> None:
        super().__init__(observation_space, 256)
        self.net = nn.Sequential(
            *(nn.Conv2d(observation_space.shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(1152, 256), nn.ReLU()),
        )

    def forward(self, observations: Tensor) -> Tensor:
        return self.net(observations)


def our_envs(game: str, n_envs: int) -> VecEnv:
    return dae.make_vec_env(f"MinAtar/{game.title().replace('_', '')}-v1", n_envs)


def package_envs(game: str, n_envs: int) -> DummyVecEnv:
    options = {"sticky_action_prob": 0.0, "difficulty_ramping": False, "use_minimal_action_set": True}
    return DummyVecEnv([lambda: Monitor(ChannelsFirst(package.BaseEnv(game, **options)))] * n_envs)


def iterate(model: OnPolicyAlgorithm, update: bool = True) -> float:
    """Collect a rollout, learn from it, and return the seconds both took."""
    _, callback = model._setup_learn(10**9, reset_num_timesteps=False)
    start = time.perf_counter()
    model.collect_rollouts(model.env, callback, model.rollout_buffer, N_STEPS)
    if update:
        model.train()
    return time.perf_counter() - start


def make_dae(game: str, n_envs: int, **changes: object) -> dae.PPO:
    """Return an agent with the paper's settings, which goes through a rollout once."""
    settings = dae.paper_settings("minatar") | {"seed": 0, "n_epochs": 1, "device": "cpu"} | changes
    return dae.PPO("CnnPolicy", our_envs(game, n_envs), **settings)


def segments_against_rows(game: str) -> float:
    """An epoch over 128 actors' frames by minibatches of whole segments, against one by rows."""
    models = {kind: make_dae(game, 128, minibatches=kind) for kind in ("rows", "segments")}
    for model in models.values():
        iterate(model, update=False)
        model._log_update = lambda *_: None
    seconds = best_seconds({kind: model.train for kind, model in models.items()}, rounds=5, patience=20)
    return seconds["segments"] / seconds["rows"]


def update_against_bare_network(n_envs: int) -> float:
    """16 minibatches of a DAE update: forward, backward and Adam of the same network on the same frames."""
    model = make_dae("breakout", n_envs)
    iterate(model, update=False)
    rollout, bare_policy = model.rollout_buffer, make_dae("breakout", 2).policy
    heads = (bare_policy.action_net, bare_policy.value_net, bare_policy.critic_net)
    all_minibatches = rollout.minibatches
    rollout.minibatches = lambda *args: itertools.islice(all_minibatches(*args), MINIBATCHES)
    model._log_update = lambda *_: None

    def bare() -> None:
        for batch in rollout.minibatches("trajectories", BATCH):
            features = bare_policy.features_extractor(batch.observations.float())
            loss = sum(head(features).square().mean() for head in heads)
            bare_policy.optimizer.zero_grad()
            loss.backward()
            bare_policy.optimizer.step()

    seconds = best_seconds({"ours": model.train, "bare": bare}, rounds=9, seconds=0.1, patience=20)
    return seconds["ours"] / seconds["bare"]


def make_ours(game: str, n_envs: int) -> OnPolicyAlgorithm:
    return dae.PPO("CnnPolicy", our_envs(game, n_envs), advantage="gae", **GAE)


def make_theirs(game: str, n_envs: int) -> OnPolicyAlgorithm:
    plain = {"features_extractor_class": PlainCNN, "net_arch": []}
    return stable_baselines3.PPO("CnnPolicy", package_envs(game, n_envs), policy_kwargs=plain, **GAE)


def serve(side: str, game: str, n_envs: str, threads: str) -> None:
    """Answer with the seconds of an iteration."""
    torch.set_num_threads(int(threads))
    model = {"ours": make_ours, "theirs": make_theirs}[side](game, int(n_envs))
    iterate(model, update=False)
    answer(lambda: [iterate(model)])


def frames_per_second(game: str, n_envs: int, threads: int, rounds: int) -> tuple[float, float]:
    """Whole iterations with the same GAE settings, ours and Stable-Baselines3's, in turns; each keeps its best.

    Each has a process of its own: our PPO changes how the allocator works, and theirs must not profit from it.
    """
    sides = {side: ("benchmarks.agent", side, game, n_envs, threads) for side in ("ours", "theirs")}
    seconds = in_turns(sides, rounds=rounds)
    ours, theirs = (n_envs * N_STEPS / min(taken for (taken,) in seconds[side]) for side in sides)
    return ours, theirs


MEMORY = """
import resource, torch, dae, dae.agent, dae.envs.minatar
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
dae.PPO, dae.make_vec_env
before = peak()
settings = dae.paper_settings("minatar") | {"seed": 0, "n_epochs": 1}
model = dae.PPO("CnnPolicy", dae.make_vec_env("MinAtar/Breakout-v1", 1024), **settings)
model.learn(1)
print(peak() - before)
"""


def main() -> None:
    print(f"\nPPO on MinAtar, baseline network, {N_STEPS} steps an actor, minibatches of {BATCH} frames")
    print("DAE update against the bare forward, backward and Adam (Breakout)")
    print(f"{'actors':>15}{'threads':>15}{'DAE : bare':>15}")
    for n_envs, threads in itertools.product((128, 1024), (1, 2)):
        torch.set_num_threads(threads)
        print(f"{n_envs:15d}{threads:15d}{update_against_bare_network(n_envs):15.3f}", flush=True)
    torch.set_num_threads(1)
    print("an epoch by segments against one by rows, 128 actors, 1 thread")
    for game in ("breakout", "seaquest", "freeway"):
        print(f"{game:>15}{segments_against_rows(game):15.3f}", flush=True)
    print("whole GAE iterations, frames a second")
    print("".join(f"{name:>15}" for name in ("game", "actors", "threads", "ours", "SB3", "ours : SB3")))
    cases = [*((game, 128) for game in GAMES), ("breakout", 1024)]
    for (game, n_envs), threads in itertools.product(cases, (1, 2)):
        ours, theirs = frames_per_second(game, n_envs, threads, rounds=3 if n_envs == 128 else 1)
        print(f"{game:>15}{n_envs:15d}{threads:15d}{ours:15.0f}{theirs:15.0f}{ours / theirs:15.2f}", flush=True)
    grown = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    print(f"peak memory of an iteration of 1024 x 128 above the imported process: {float(grown):.0f} MB")


if __name__ == "__main__":
    serve(*sys.argv[1:])
