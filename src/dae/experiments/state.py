"""Everything a run needs to go on as if it had never stopped, taken out of a running agent and put back."""

import io
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO, parallel
from dae.envs.snapshots import restore_snapshot, take_snapshot
from dae.experiments.config import TrainConfig, require_same
from dae.plain import from_bytes, to_bytes
from dae.runs import Checkpoint, RunFolder, RunProblem

_PARTS = _AGENT, _STATE, _ENVIRONMENTS = "agent.zip", "state.json", "environments.bin"


@dataclass
class Books:
    """What a run keeps account of beside the agent."""

    seconds: float = 0.0  # of training so far
    monitor_size: int | None = None  # bytes of the episode file
    episodes: int = 0
    completed_frames: int = 0  # in completed episodes
    restarts: int = 0  # how often environments that cannot be restored had to start anew


def take_checkpoint(config: TrainConfig, model: PPO, books: Books, *, exact: bool) -> Checkpoint:
    """Return the state of a run between two iterations, as bytes that hold data only.

    Where processes train together, the first one's checkpoint has the parts of all.
    """
    own = _take_own(config, model, books, exact=exact)
    if parallel.size() == 1:
        return own
    of_others = {name: content for name, content in own.parts.items() if name != _AGENT} if parallel.rank() else {}
    parts = dict(own.parts)
    for rank, packed in enumerate(parallel.gather(_pack(of_others))):
        parts |= {_of_rank(name, rank): content for name, content in _unpack(packed).items()}
    return Checkpoint(own.frames, parts)


def require_as_many_processes(checkpoint: Checkpoint, folder: RunFolder) -> None:
    """Refuse to continue with another number of processes: each has actors of its own."""
    processes = sum(name.startswith("state") for name in checkpoint.parts)
    if processes != parallel.size():
        raise RunProblem(
            f"{folder.path} was trained by {processes} process(es), not {parallel.size()}: continue it with as many"
        )


def share_checkpoint(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """Give every process its part of the checkpoint that the first one has, if it has one."""
    if parallel.size() == 1:
        return checkpoint
    packed = [b""] * parallel.size()
    if checkpoint is not None:
        packed = [
            _pack({n: checkpoint.parts[_of_rank(n, rank)] for n in _PARTS if _of_rank(n, rank) in checkpoint.parts})
            for rank in range(parallel.size())
        ]
    own = parallel.scatter(packed)
    frames = int(parallel.broadcast([checkpoint.frames if checkpoint else 0])[0])
    return Checkpoint(frames, _unpack(own)) if own else None


def _of_rank(name: str, rank: int) -> str:
    """Name a part of another process than the first; the agent is the same in all."""
    stem, ending = name.split(".")
    return name if rank == 0 or name == _AGENT else f"{stem}_{rank}.{ending}"


def _pack(parts: Mapping[str, bytes]) -> bytes:
    header = json.dumps({name: len(content) for name, content in parts.items()}).encode()
    return b"\n".join([header, b"".join(parts.values())])


def _unpack(packed: bytes) -> dict[str, bytes]:
    header, _, rest = packed.partition(b"\n")
    parts, start = {}, 0
    for name, length in json.loads(header).items():
        parts[name] = rest[start : start + length]
        start += length
    return parts


def _take_own(config: TrainConfig, model: PPO, books: Books, *, exact: bool) -> Checkpoint:
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
        env.seed((parallel.own_seed(config.seed) + 1_000_003 * books.restarts) % 2**32)
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
