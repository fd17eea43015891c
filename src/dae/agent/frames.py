"""Observations that are stacks of frames: a frame is stored once, and stacked again when it is read."""

import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecFrameStack, VecTransposeImage
from torch import Tensor

from dae.errors import InvalidValue

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)


class FrameStore:
    """What B actors saw in T steps: exactly that, in little more than one frame a step.

    `index[b, t, k]` is the place of a stack's k-th frame, the oldest first, in a pool of frames. An environment that
    shifts its stacks adds one frame a step; zeros or repeated frames at the start of an episode add none. Only contents
    are compared, so that what environments do is never guessed; where they show many new frames, the pool grows.
    """

    def __init__(self, n_envs: int, n_steps: int, n_stack: int, space: spaces.Box, device: torch.device) -> None:
        self._observation, self._dtype = space.shape, torch.from_numpy(np.zeros(0, space.dtype)).dtype
        self._frame = (space.shape[0] // n_stack, *space.shape[1:])
        self.index = torch.zeros(n_envs, n_steps, n_stack, dtype=torch.int64, device=device)
        size = 1 + n_envs * (n_steps + n_stack - 1)  # one of zeros, and what each actor sees if stacks are only shifted
        self._pool = _as_integers(torch.empty(size, math.prod(self._frame), dtype=self._dtype, device=device))
        self.forget()

    def forget(self) -> None:
        """Forget what was stored."""
        self._pool[0] = 0
        self.index.zero_()
        self._used = 1

    @property
    def nbytes(self) -> int:
        return self._pool.nbytes + self.index.nbytes

    @property
    def frames(self) -> Tensor:
        """All frames that `index` points to."""
        return self._pool[: self._used].view(self._dtype).view(-1, *self._frame)

    def store(self, t: int, observations: Tensor) -> None:
        """Store what all actors see in step t, the one after the last."""
        places = self.index[:, t]
        stacks = _as_integers(observations.to(self._dtype).reshape(*places.shape, -1).contiguous())
        places[:, -1] = self._add(stacks[:, -1])
        if t == 0:
            self._place(stacks, places)
            return
        places[:, :-1] = self.index[:, t - 1, 1:]
        expected = self._pool.index_select(0, places[:, :-1].flatten()).view_as(stacks[:, :-1])
        others = (stacks[:, :-1] != expected).flatten(1).any(1).nonzero().flatten()
        if len(others):
            chosen = places.index_select(0, others)
            self._place(stacks.index_select(0, others), chosen)
            places[others] = chosen

    def _place(self, stacks: Tensor, places: Tensor) -> None:
        """Fill in the places of all frames but the newest: of frames of zeros, of the next newer one, or new ones."""
        for k in reversed(range(places.shape[1] - 1)):
            frames, newer = stacks[:, k], places[:, k + 1]
            zeros, repeated = (frames == 0).all(1), (frames == stacks[:, k + 1]).all(1)
            new = ~(zeros | repeated)
            places[:, k] = torch.where(zeros, 0, newer)
            places[new, k] = self._add(frames[new])

    def _add(self, frames: Tensor) -> Tensor:
        """Add frames to the pool, and return their places."""
        start = self._used
        self._use(start + len(frames))
        self._pool[start : self._used] = frames
        return torch.arange(start, self._used, device=frames.device)

    def _use(self, count: int) -> None:
        """Use so many frames of the pool, which grows by half, so that it is rarely copied, if it has fewer."""
        if count > len(self._pool):
            size = max(count, min(len(self._pool) * 3 // 2, 1 + self.index.numel()))
            larger = self._pool.new_empty(size, *self._pool.shape[1:])
            larger[: self._used] = self._pool[: self._used]
            self._pool = larger
        self._used = count

    def stacked(self, places: Tensor) -> Tensor:
        """Return the observations whose frames are in these places, (N, n_stack)."""
        return self._pool.index_select(0, places.flatten()).view(self._dtype).view(-1, *self._observation)

    def restore(self, frames: Tensor, index: Tensor) -> None:
        """Store what another store of this size held; a file may hold anything in its place."""
        own = (self._frame, self._dtype, self.index.shape, self.index.dtype)
        if (frames.shape[1:], frames.dtype, index.shape, index.dtype) != own or len(frames) > 1 + index.numel():
            raise InvalidValue("it is a rollout of another size")
        if index.min() < 0 or index.max() >= len(frames):
            raise InvalidValue(f"its stacks are made of other frames than the {len(frames)} that it holds")
        self._use(len(frames))
        self.frames.copy_(frames)
        self.index.copy_(index)


def stack_size(env: VecEnv | None) -> int:
    """Return how many frames an agent's observations stack along their first axis; 1 where no environment says so.

    The stacks are those of Stable-Baselines3's VecFrameStack, or of environments with an attribute `n_stack`. Wrappers
    around them may turn images around; numbers that were scaled to other ones are not shifted from step to step.
    """
    turned, within = False, env
    while isinstance(within, VecEnvWrapper) and not isinstance(within, VecFrameStack):
        turned |= isinstance(within, VecTransposeImage) and not within.skip
        within = within.venv
    if env is None or within is None or not isinstance(within.observation_space, spaces.Box):
        return 1
    stacks: Any = within.stacked_obs if isinstance(within, VecFrameStack) else within
    n_stack: int = getattr(stacks, "n_stack", None) or 1
    shown, seen = within.observation_space, env.observation_space
    shape = (shown.shape[-1], *shown.shape[:-1]) if turned else shown.shape
    unchanged = (seen.shape, seen.dtype) == (shape, shown.dtype) and not np.issubdtype(shown.dtype, np.floating)
    along_first = turned or getattr(stacks, "channels_first", True)
    return n_stack if n_stack > 1 and unchanged and along_first and shape[0] % n_stack == 0 else 1


def _as_integers(frames: Tensor) -> Tensor:
    """View frames, the last axis, as the widest integers that fit: few to compare, and equal only bit for bit."""
    size = frames.shape[-1] * frames.element_size()
    return frames.view(next(kind for kind in _INTEGERS if size % kind.itemsize == 0))
