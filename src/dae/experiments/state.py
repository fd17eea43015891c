"""Everything a run needs to go on as if it had never stopped, taken out of a running agent and put back."""

import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs.snapshots import restore_snapshot, take_snapshot
from dae.experiments.config import TrainConfig, require_same
from dae.plain import from_bytes, to_bytes
from dae.runs import Checkpoint, RunFolder

_AGENT, _STATE, _ENVIRONMENTS = "agent.zip", "state.json", "environments.bin"


@dataclass
class Books:
    """What a run keeps account of beside the agent."""

    seconds: float = 0.0  # of training so far
    monitor_size: int | None = None  # bytes of the episode file
    episodes: int = 0
    completed_frames: int = 0  # in completed episodes
    restarts: int = 0  # how often environments that cannot be restored had to start anew


def take_checkpoint(config: TrainConfig, model: PPO, books: Books, *, exact: bool) -> Checkpoint:
    """Return the state of a run between two iterations, as bytes that hold data only."""
    agent = io.BytesIO()
    model.save(agent)
    assert model.env is not None
    assert model.ep_info_buffer is not None
    state = {
        "settings": config.to_json(),
        "books": vars(books),
        "recent_episodes": list(model.ep_info_buffer),
        "episode_starts": model._last_episode_starts,
        "torch_random": torch.get_rng_state().numpy(),
        "cuda_random": [s.numpy() for s in torch.cuda.get_rng_state_all()] if model.device.type == "cuda" else [],
        "numpy_random": np.random.get_state(),  # noqa: NPY002 (Stable-Baselines3 draws from it)
    }
    parts = {_AGENT: agent.getvalue(), _STATE: to_bytes(state)}
    if exact:
        parts[_ENVIRONMENTS] = take_snapshot(model.env, model._last_obs)  # type: ignore[arg-type]
    return Checkpoint(model.num_timesteps, parts)


def restore(
    config: TrainConfig, folder: RunFolder, env: VecEnv, checkpoint: Checkpoint, announce: Callable[[str], None]
) -> tuple[PPO, Books]:
    """Return the agent and the books as a checkpoint has them, and bring the environments to where they were."""
    state: dict[str, Any] = from_bytes(checkpoint.parts[_STATE])
    require_same(folder.path, state["settings"], config.to_json())
    model = load_agent(checkpoint, env=env, device=config.device)
    books = Books(**state["books"])
    if _ENVIRONMENTS in checkpoint.parts:
        model._last_obs = restore_snapshot(env, checkpoint.parts[_ENVIRONMENTS])  # type: ignore[assignment]
    else:
        books.restarts += 1
        announce(
            f"{config.env} cannot be restored exactly: its episodes start anew from seeds of their own (restart "
            f"{books.restarts}), and those that were under way are not scored"
        )
        env.seed((config.seed + 1_000_003 * books.restarts) % 2**32)
        model._last_obs = env.reset()  # type: ignore[assignment]
    model._last_episode_starts = state["episode_starts"]
    model.ep_info_buffer = deque(state["recent_episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    torch.set_rng_state(torch.from_numpy(state["torch_random"]))
    if state["cuda_random"] and model.device.type == "cuda":
        torch.cuda.set_rng_state_all([torch.from_numpy(s) for s in state["cuda_random"]])
    np.random.set_state(state["numpy_random"])  # noqa: NPY002
    return model, books


def load_agent(checkpoint: Checkpoint, **options: Any) -> PPO:
    """Return the agent of a checkpoint."""
    return PPO.load(io.BytesIO(checkpoint.parts[_AGENT]), **options)
