"""Everything a run needs to go on as if it had never stopped, taken out of a running agent and put back."""

import contextlib
import io
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors.torch import load as load_tensors, save as save_tensors
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from torch import Tensor

from dae.agent import PPO, parallel
from dae.agent.saving import LAST_SEEN
from dae.envs.snapshots import set_generators, take_generators
from dae.errors import UserError, one_line
from dae.experiments.config import TrainConfig
from dae.experiments.loading import AGENT, NORMALIZATION, load_agent
from dae.experiments.normalization import restore_statistics, take_statistics
from dae.experiments.training.building import agent_class
from dae.experiments.wrappers import as_seen_by_agent, as_shown_within, innermost
from dae.runs import Checkpoint, RunFolder, RunSettings
from dae.runs.settings import require_same
from dae.serialization import BadData, from_bytes, to_bytes
from dae.terminal.boundary import announce
from dae.text import plural

_STATE, _ENVIRONMENTS, _ROLLOUT = "state.json", "environments.bin", "rollout.safetensors"
_PARTS = (AGENT, _STATE, _ENVIRONMENTS)


@dataclass
class Counters:
    """What a run counts beside the agent."""

    seconds: float = 0.0  # of training so far
    monitor_size: int | None = None  # bytes of the episode file
    episodes: int = 0
    completed_frames: int = 0  # in completed episodes
    restarts: int = 0  # how often environments that cannot be restored had to be restarted
    evaluations_size: int | None = None  # bytes of the file of evaluations
    evaluated_at: int = 0  # frames at the last evaluation
    evaluation: float | None = None  # its mean score
    best: float | None = None  # the best of all evaluations


def take_checkpoint(
    config: TrainConfig, agent: PPO, counters: Counters, *, exact: bool, pending: bool = False
) -> Checkpoint:
    """Return the state of a run between two iterations, as bytes that hold data only; or, `pending`, before an update.

    Where processes train together, the first one's checkpoint has the parts of all.
    """
    frames = agent.num_timesteps * config.family.frames_per_step
    own = _take_own(config, agent, counters, exact=exact)
    if pending:
        own[_ROLLOUT] = _take_rollout(agent)
    if parallel.size() == 1:
        return Checkpoint(frames, own, pending)
    of_others = {name: content for name, content in own.items() if name != AGENT} if parallel.rank() else {}
    parts = dict(own)
    for rank, of_rank in enumerate(parallel.gather(of_others)):
        parts |= {_of_rank(name, rank): content for name, content in of_rank.items()}
    return Checkpoint(frames, parts)


def require_as_many_processes(checkpoint: Checkpoint, folder: RunFolder) -> None:
    """Refuse to continue with a different number of processes: each has its own actors."""
    processes = sum(name.startswith("state") for name in checkpoint.parts)
    if processes != parallel.size():
        raise UserError(
            f"{folder.path} was trained by {plural(processes, 'process', 'processes')}, not {parallel.size()}: "
            "use the same number"
        )


def share_checkpoint(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """Give every process its part of the checkpoint that the first one has, if it has one."""
    shares: list[Checkpoint | None] = [checkpoint] * parallel.size()
    if checkpoint is not None and parallel.size() > 1:
        by_rank = [
            {
                name: checkpoint.parts[_of_rank(name, rank)]
                for name in _PARTS
                if _of_rank(name, rank) in checkpoint.parts
            }
            for rank in range(parallel.size())
        ]
        shares = [Checkpoint(checkpoint.frames, parts) for parts in by_rank]
    return parallel.scatter(shares)


def _of_rank(name: str, rank: int) -> str:
    """Name a part that belongs to a process other than the first; the agent is the same in all."""
    stem, ending = name.split(".")
    return name if rank == 0 or name == AGENT else f"{stem}_{rank}.{ending}"


def _take_own(config: TrainConfig, agent: PPO, counters: Counters, *, exact: bool) -> dict[str, bytes]:
    saved = io.BytesIO()
    agent.save(saved, exclude=LAST_SEEN)  # the snapshot has it
    assert agent.env is not None
    assert agent.ep_info_buffer is not None
    state = {
        "settings": config.to_json(),
        "books": vars(counters),
        "recent_episodes": list(agent.ep_info_buffer),
        "episode_starts": agent._last_episode_starts,
        "cuda_random": [s.numpy() for s in torch.cuda.get_rng_state_all()] if agent.device.type == "cuda" else [],
        **take_generators(),
    }
    parts = {AGENT: saved.getvalue(), _STATE: to_bytes(state)}
    statistics = take_statistics(agent.env)
    if statistics is not None:
        parts[NORMALIZATION] = statistics
    if exact:
        shown = as_shown_within(agent.env, agent._last_obs)
        parts[_ENVIRONMENTS] = config.family.take_snapshot(innermost(agent.env), shown)
    return parts


def _take_rollout(agent: PPO) -> bytes:
    """Return what the agent has not learned from yet; observations that are switches take a bit each."""
    tensors = agent.rollout_buffer.tensors
    return save_tensors(
        {name: _packed(tensor) if _is_packed(name, tensor) else tensor for name, tensor in tensors.items()}
    )


def _restore_rollout(agent: PPO, content: bytes) -> None:
    shapes = agent.rollout_buffer.tensors
    stored = {
        name: _unpacked(tensor, shapes[name].shape) if name in shapes and _is_packed(name, shapes[name]) else tensor
        for name, tensor in load_tensors(content).items()
    }
    agent.rollout_buffer.restore(stored)


def _is_packed(name: str, tensor: Tensor) -> bool:
    return name.startswith("observations") and tensor.dtype == torch.bool


def _packed(tensor: Tensor) -> Tensor:
    return torch.from_numpy(np.packbits(tensor.cpu().numpy()))


def _unpacked(packed: Tensor, shape: torch.Size) -> Tensor:
    return torch.from_numpy(np.unpackbits(packed.numpy(), count=shape.numel()).astype(bool)).reshape(shape)


def restore(config: TrainConfig, folder: RunFolder, env: VecEnv, checkpoint: Checkpoint) -> tuple[PPO, Counters]:
    """Return the agent and the counters as a checkpoint has them, and bring the environments to where they were."""
    with _only_what_runs_write(folder, checkpoint):
        state: dict[str, Any] = from_bytes(checkpoint.parts[_STATE])
        stored = RunSettings.from_json(state["settings"], folder.checkpoints.folder)
        longer = {"frames": config.frames, "extended_from": config.extended_from}  # which config.json has agreed to
        require_same(folder.path, stored.to_json() | longer, config.to_json())
        agent = load_agent(checkpoint, agent_class(config), env=env, device=config.device)
        counters = msgspec.convert(state["books"], Counters)
        if counters.monitor_size is None and parallel.rank() == 0:
            raise UserError(f"the checkpoint of {folder.path} does not say how long monitor.csv was")
        _announce_continuation(folder, checkpoint)
        normalizer = unwrap_vec_normalize(env)
        if normalizer is not None:
            restore_statistics(normalizer, checkpoint.parts[NORMALIZATION])
        assert agent.env is not None  # `env`, in wrappers of the agent's
        if _ENVIRONMENTS in checkpoint.parts:
            shown = config.family.restore_snapshot(innermost(env), checkpoint.parts[_ENVIRONMENTS])
            agent._last_obs = as_seen_by_agent(agent.env, shown)
        else:
            _start_again(config, agent.env, agent, counters)
        agent._last_episode_starts = np.broadcast_to(state["episode_starts"], env.num_envs).astype(bool)
        agent.ep_info_buffer = deque(
            [{"r": float(e["r"]), "l": int(e["l"]), "t": float(e["t"])} for e in state["recent_episodes"]],
            maxlen=agent._stats_window_size,
        )
        agent.ep_success_buffer = deque(maxlen=agent._stats_window_size)
        if checkpoint.pending:
            _restore_rollout(agent, checkpoint.parts[_ROLLOUT])
        set_generators(state)
        if state["cuda_random"] and agent.device.type == "cuda":
            torch.cuda.set_rng_state_all([torch.from_numpy(s) for s in state["cuda_random"]])
    return agent, counters


@contextlib.contextmanager
def _only_what_runs_write(folder: RunFolder, checkpoint: Checkpoint) -> Iterator[None]:
    """Report in one line what a checkpoint holds that no run has written; its sums are right, so someone made it."""
    try:
        yield
    except BadData as error:
        raise UserError(
            f"the checkpoint of {folder.path} at {checkpoint.frames:,} frames cannot be restored: {error}"
        ) from error
    except UserError:
        raise
    except Exception as error:  # whatever it is, the file caused it
        raise UserError(
            f"the checkpoint of {folder.path} at {checkpoint.frames:,} frames holds what no run writes "
            f"({type(error).__name__}: {one_line(error)[:200]}): restore it from a backup"
        ) from error


def _start_again(config: TrainConfig, env: VecEnv, agent: PPO, counters: Counters) -> None:
    """Begin new episodes in environments that cannot be restored."""
    counters.restarts += 1
    if parallel.rank() == 0:
        announce(
            f"{config.env} cannot be restored exactly: its episodes start again with new seeds (restart "
            f"{counters.restarts}), and episodes that were in progress are not scored"
        )
    env.seed((parallel.own_seed(config.seed) + 1_000_003 * counters.restarts) % 2**32)
    agent._last_obs = env.reset()  # type: ignore[assignment]


def _announce_continuation(folder: RunFolder, checkpoint: Checkpoint) -> None:
    if parallel.rank() > 0:
        return
    print(f"continuing at {plural(checkpoint.frames, 'frame')}")
    threads, now = folder.read_config().made_with.threads, torch.get_num_threads()
    if threads is not None and threads != now:
        announce(
            f"the run began with {plural(threads, 'thread')} and continues with {now}: sums are added in a different "
            f"order, so the result will not be bit for bit the same; use --threads {threads} to make it so"
        )
