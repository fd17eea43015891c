"""What the actors saw and did between two updates: storage, and the order it is read in. It does no mathematics."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import PyTorchObs
from torch import Tensor

from dae.agent.actions import Choices
from dae.agent.frames import FrameStore
from dae.agent.policy import Acted
from dae.catalog import Batching
from dae.errors import InvalidValue
from dae.text import plural


@dataclass
class Batch:
    """Some of a rollout: rows of whole trajectories, (B, T), or shuffled steps, (N,)."""

    observations: PyTorchObs  # flat, (B·T, …) or (N, …): networks need no rows
    actions: Tensor  # flat as well
    rewards: Tensor
    terminated: Tensor
    truncated: Tensor
    bootstrap: Tensor
    values: Tensor  # V̂ when the actions were taken
    log_prob: Tensor  # log μ(a|s) of the actions taken
    log_probs: Tensor | None  # log μ(·|s), of actions that can be enumerated
    critic: Tensor | None  # the extra head's output when the actions were taken, if there is one
    advantages: Tensor | None  # what an estimator prepared, if it did
    returns: Tensor | None
    masks: Tensor | None  # flat; which options were allowed, where the environments restrict them

    @property
    def shape(self) -> torch.Size:
        return self.rewards.shape


_PREPARED = ("advantages", "returns")
_PER_STEP = tuple(field.name for field in fields(Batch) if field.name not in ("observations", "actions", "masks"))
_STORED = tuple(field.name for field in fields(Batch) if field.name not in ("observations", *_PREPARED))


class Rollout:
    """T steps of B actors, one contiguous row per actor, observations in their own dtype.

    Observations that are stacks of `n_stack` frames along the first axis are stored as single frames.
    `bootstrap[b, t]` is the value, when the actor acted, of the true state after step t.
    """

    def __init__(
        self,
        n_steps: int,
        n_envs: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device,
        *,
        has_head: bool = False,
        n_stack: int = 1,
    ) -> None:
        self.n_steps, self.n_envs, self.n_stack, self.device = n_steps, n_envs, n_stack, device
        self._observation_space, self._action_space, self._has_head = observation_space, action_space, has_head
        self._forget()
        if n_steps * n_envs >= 2**53:  # far more than tensors can have
            raise self._too_large
        self._measure()

    def _measure(self) -> None:
        """Find out the sizes alone, and refuse what does not fit; memory is taken when something is stored."""
        self._allocate(torch.device("meta"))
        if self.device.type == "cpu":
            require_memory(str(self), self.nbytes)

    def _allocate(self, device: torch.device) -> None:
        try:
            self._take_memory(device)
        except (RuntimeError, MemoryError, OverflowError) as error:
            raise self._too_large from error

    def _take_memory(self, device: torch.device) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(self.n_envs, self.n_steps, *shape, dtype=dtype, device=device)

        def like(space: spaces.Space[Any]) -> Tensor:
            assert space.shape is not None
            return zeros(*space.shape, dtype=torch.from_numpy(np.zeros(0, space.dtype)).dtype)

        seen = self._observation_space
        self.observations: PyTorchObs | FrameStore
        if isinstance(seen, spaces.Dict):
            self.observations = {name: like(space) for name, space in seen.items()}
        elif isinstance(seen, spaces.Box) and self.n_stack > 1:
            self.observations = FrameStore(self.n_envs, self.n_steps, self.n_stack, seen, device)
        else:
            self.observations = like(seen)
        discrete = isinstance(self._action_space, spaces.Discrete)
        # As in Stable-Baselines3, actions that are not one number are stored as floats: some distributions need that.
        self.actions = like(self._action_space) if discrete else zeros(*(self._action_space.shape or ()))
        self.rewards, self.values, self.log_prob, self.bootstrap = zeros(), zeros(), zeros(), zeros()
        self.terminated, self.truncated = zeros(dtype=torch.bool), zeros(dtype=torch.bool)
        choices = Choices.of(self._action_space)
        self.log_probs = None if choices is None else zeros(choices.total)
        self.critic = zeros(choices.total) if self._has_head and choices is not None else None

    def __str__(self) -> str:
        return f"a rollout of {plural(self.n_steps, 'step')} x {plural(self.n_envs, 'environment')}"

    @property
    def _too_large(self) -> InvalidValue:
        return InvalidValue(f"{self} does not fit into memory: lower n_steps")

    @property
    def nbytes(self) -> int:
        """The memory that it takes, or will take: with single frames, as much as stacks need that are only shifted."""
        seen = self.observations
        parts = [seen] if isinstance(seen, FrameStore) else self._parts_of(seen).values()
        return sum(stored.nbytes for stored in (*parts, *self._stored.values()))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All that is stored, by name; what an estimator prepares is not part of it."""
        return self._parts_of(self.observations) | self._stored

    @staticmethod
    def _parts_of(seen: PyTorchObs | FrameStore) -> dict[str, Tensor]:
        if isinstance(seen, FrameStore):
            return {"frames": seen.frames, "stacks": seen.index}
        return {f"observations.{name}": part for name, part in (seen if isinstance(seen, dict) else {"": seen}).items()}

    @property
    def _stored(self) -> dict[str, Tensor]:
        rest = {name: getattr(self, name) for name in _STORED}
        return {name: tensor for name, tensor in rest.items() if tensor is not None}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Store what another rollout of this size held."""
        self.reset()
        if "masks" in tensors:
            self._make_masks(tensors["masks"].shape[2:])
        own, given = self.tensors, dict(tensors)
        if isinstance(self.observations, FrameStore) and {"frames", "stacks"} <= given.keys():
            self.observations.restore(given.pop("frames"), given.pop("stacks"))
            own = self._stored
        if {name: (t.shape, t.dtype) for name, t in given.items()} != {
            name: (t.shape, t.dtype) for name, t in own.items()
        }:
            raise InvalidValue("it is a rollout of another size")
        for name, tensor in given.items():
            own[name].copy_(tensor)
        self.position = self.n_steps

    def reset(self, n_stack: int | None = None) -> None:
        """Forget what was stored, and prepare for stacks of `n_stack` frames, or of as many as before."""
        self._forget()
        if n_stack is not None and n_stack != self.n_stack:
            self.n_stack = n_stack
            self._measure()
        if self.rewards.is_meta:
            self._allocate(self.device)
        elif isinstance(self.observations, FrameStore):
            self.observations.forget()

    def _forget(self) -> None:
        self.position = 0
        self.masks: Tensor | None = None
        self.advantages: Tensor | None = None
        self.returns: Tensor | None = None

    @property
    def full(self) -> bool:
        return self.position == self.n_steps

    def add_observations(self, observations: PyTorchObs) -> None:
        """Store what all actors see before their next step, which `add` completes."""
        if isinstance(self.observations, FrameStore):
            assert isinstance(observations, Tensor)
            self.observations.store(self.position, observations)
            return
        stored, given = self._parts_of(self.observations), self._parts_of(observations)
        for name, part in given.items():
            stored[name][:, self.position] = part

    def add(
        self,
        rewards: np.ndarray[Any, Any],
        terminated: np.ndarray[Any, Any],
        truncated: np.ndarray[Any, Any],
        acted: Acted,
        masks: Tensor | None = None,
    ) -> None:
        """Store what all actors did in a step, and what came of it."""
        t = self.position
        self.actions[:, t] = acted.actions.reshape(self.actions[:, t].shape)
        self.rewards[:, t] = torch.as_tensor(rewards, device=self.device)
        self.terminated[:, t] = torch.as_tensor(terminated, device=self.device)
        self.truncated[:, t] = torch.as_tensor(truncated, device=self.device)
        self.values[:, t] = acted.values
        self.log_prob[:, t] = acted.log_prob
        for stored, given in ((self.log_probs, acted.log_probs), (self.critic, acted.critic)):
            if stored is not None and given is not None:
                stored[:, t] = given
        if masks is not None:
            self._make_masks(masks.shape[1:])
            assert self.masks is not None
            self.masks[:, t] = masks
        self.position += 1

    def _make_masks(self, shape: Sequence[int]) -> None:
        if self.masks is None:
            self.masks = torch.ones(self.n_envs, self.n_steps, *shape, dtype=torch.bool, device=self.device)

    def finish(self, last_values: Tensor) -> None:
        """Fill in the value after each step, except where an episode was truncated: there it is stored already."""
        following = torch.cat((self.values[:, 1:], last_values.reshape(-1, 1)), 1)
        self.bootstrap = torch.where(self.truncated, self.bootstrap, following)

    def minibatches(self, batching: Batching, batch_size: int, row_length: int | None = None) -> Iterator[Batch]:
        """Go through the rollout in random order, every step once; the last minibatch may be smaller.

        Trajectories come in rows of `row_length` steps, or of as many as there are if it is None, and as many rows as
        fit into `batch_size`; if not even one fits, in rows of that many steps.
        """
        if batching == "steps":
            for steps in torch.split(self._shuffled(self.n_envs * self.n_steps), batch_size):
                yield self._batch(steps)
            return
        length = min(row_length or self.n_steps, self.n_steps, batch_size)
        pieces, rest = divmod(self.n_steps, length)
        for chosen in torch.split(self._shuffled(self.n_envs * pieces), batch_size // length):
            yield self._batch(_rows(chosen // pieces * self.n_steps + chosen % pieces * length, length))
        if rest:
            for chosen in torch.split(self._shuffled(self.n_envs), batch_size // rest):
                yield self._batch(_rows(chosen * self.n_steps + pieces * length, rest))

    def rows(self, batch_size: int) -> Iterator[Batch]:
        """Go through the rollout row by row, in their order, a few whole rows at a time."""
        for chosen in torch.split(torch.arange(self.n_envs, device=self.device), max(1, batch_size // self.n_steps)):
            yield self._batch(_rows(chosen * self.n_steps, self.n_steps))

    def segments(self, batch_size: int, *, drop_last: bool = False) -> Iterator[Batch]:
        """Go through the rollout by segments, the stretches between episode ends, in random order and never cut.

        A minibatch is one row, (1, F), of as many as it takes for F to reach `batch_size`.
        With `drop_last`, what does not fill a minibatch at the end is left out, unless it is all there is.
        """
        truncated = self.truncated.clone()
        truncated[:, -1] |= ~self.terminated[:, -1]  # what the rollout cuts bootstraps, as at the end of a row
        stops = np.flatnonzero((self.terminated | truncated).flatten().cpu().numpy()) + 1
        starts = np.concatenate(([0], stops[:-1]))
        order = _permutation(len(stops))
        starts, lengths = starts[order], (stops - starts)[order]
        sizes = _full_sizes(lengths, batch_size)
        total = int(lengths.sum())
        if sum(sizes) < total and not (drop_last and sizes):
            sizes.append(total - sum(sizes))
        ends = lengths.cumsum()
        steps = torch.from_numpy(np.repeat(starts - (ends - lengths), lengths) + np.arange(total)).to(self.device)
        for chosen in torch.split(steps[: sum(sizes)], sizes):
            row = chosen.unsqueeze(0)
            yield replace(self._batch(row), truncated=_pick(truncated, row))

    def _shuffled(self, count: int) -> Tensor:
        return torch.from_numpy(_permutation(count)).to(self.device, non_blocking=True)

    def _batch(self, steps: Tensor) -> Batch:
        """Read steps, which are counted along the rows: (N,) or rows of them, (B, T)."""
        flat = steps.flatten()
        seen = self.observations
        observations: PyTorchObs
        if isinstance(seen, FrameStore):
            observations = seen.stacked(_pick(seen.index, flat))
        elif isinstance(seen, dict):
            observations = {name: _pick(part, flat) for name, part in seen.items()}
        else:
            observations = _pick(seen, flat)
        stored = {name: getattr(self, name) for name in _PER_STEP}
        per_step = {name: None if part is None else _pick(part, steps) for name, part in stored.items()}
        masks = None if self.masks is None else _pick(self.masks, flat)
        return Batch(observations, _pick(self.actions, flat), **per_step, masks=masks)  # type: ignore[arg-type]


def require_memory(what: str, size: int) -> None:
    """Refuse what the machine cannot hold; the system would only find out when the memory is used."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > there:
        raise InvalidValue(
            f"{what} takes {size / 1e9:,.1f} GB of memory, and this machine has {there / 1e9:,.1f} GB: lower one of "
            "them"
        )


def ends_of(data: Rollout | Batch) -> dict[str, Tensor]:
    """Return where segments end and what follows them, as the functions of `dae.core` take it."""
    return {"bootstrap": data.bootstrap, "terminated": data.terminated, "truncated": data.truncated}


def _rows(starts: Tensor, length: int) -> Tensor:
    """Return rows of steps that follow each other."""
    return starts.unsqueeze(1) + torch.arange(length, device=starts.device)


def _pick(stored: Tensor, steps: Tensor) -> Tensor:
    """Pick steps out of (B, T, …), which is not copied for it."""
    return stored.flatten(0, 1).index_select(0, steps.flatten()).view(*steps.shape, *stored.shape[2:])


def _full_sizes(lengths: NDArray[np.int64], least: int) -> list[int]:
    """Group lengths, in their order, until each group holds at least `least`; the rest is in no group."""
    sizes, size = [], 0
    for length in lengths.tolist():
        size += length
        if size >= least:
            sizes.append(size)
            size = 0
    return sizes


def _permutation(count: int) -> NDArray[np.int64]:
    """Draw from NumPy's global generator, as Stable-Baselines3 does: `set_random_seed` seeds it."""
    return np.random.permutation(count)  # noqa: NPY002
