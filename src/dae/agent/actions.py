"""Actions that can be enumerated: one choice (Discrete) or several independent ones (MultiDiscrete, MultiBinary).

What has a number per action, such as log π(·|s), lies along one last axis, choice after choice: (..., 3 + 2) for two
choices of three and two options. A policy takes the choices independently of each other, so an advantage that is a sum
over choices is centred when each of its parts is, and sums over the axis add up to entropies, KL divergences and second
moments of the whole action. Masks have the same order as in sb3-contrib.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecEnvWrapper
from torch import Tensor

from dae.core import center
from dae.errors import InvalidValue, one_line
from dae.text import plural


@dataclass(frozen=True)
class Choices:
    """The options of each choice that makes up an action."""

    sizes: tuple[int, ...]

    @staticmethod
    def of(space: spaces.Space[Any]) -> "Choices | None":
        """Return the choices of an action space; None if its actions cannot be enumerated."""
        if isinstance(space, spaces.Discrete):
            return Choices((int(space.n),))
        if isinstance(space, spaces.MultiDiscrete):
            return Choices(tuple(int(n) for n in space.nvec.flat))
        if isinstance(space, spaces.MultiBinary):
            return Choices((2,) * int(np.prod(space.shape)))
        return None

    @property
    def total(self) -> int:
        return sum(self.sizes)

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Normalise every choice."""
        return torch.cat([torch.log_softmax(part, -1) for part in self._split(logits)], -1)

    def center(self, f: Tensor, probs: Tensor) -> Tensor:
        """Centre every choice: the sum of the parts is then centred over all actions."""
        parts = zip(self._split(f), self._split(probs), strict=True)
        return torch.cat([center(part, of_part) for part, of_part in parts], -1)

    def taken(self, per_option: Tensor, actions: Tensor) -> Tensor:
        """Return the sum over the options that actions take, given (..., total) and an action for each row."""
        shape = per_option.shape[:-1]
        chosen = actions.long().reshape(*shape, len(self.sizes))
        if len(self.sizes) > 1:
            chosen = chosen + torch.tensor([0, *self.sizes[:-1]], device=chosen.device).cumsum(0)
        return per_option.gather(-1, chosen).sum(-1)

    def sample(self, log_probs: Tensor, *, deterministic: bool = False) -> Tensor:
        """Draw actions, or take the most probable ones: (N, choices)."""
        parts = self._split(log_probs)
        if deterministic:
            return torch.stack([part.argmax(-1) for part in parts], -1)
        return torch.cat([torch.multinomial(part.exp(), 1) for part in parts], -1)

    def _split(self, per_option: Tensor) -> tuple[Tensor, ...]:
        return torch.split(per_option, list(self.sizes), -1)


def mask_reader_of(env: VecEnv) -> Callable[[], NDArray[np.bool_] | None]:
    """Return a function that reads which options the environments allow now, (N, A); None if they allow all."""
    choices = Choices.of(env.action_space)
    if choices is None or not _have_masks(env):
        return no_masks

    def read() -> NDArray[np.bool_]:
        try:
            masks = np.stack([np.asarray(mask, bool).reshape(-1) for mask in env.env_method("action_masks")])
        except (TypeError, ValueError) as error:
            raise InvalidValue(
                f"action_masks of the environments cannot be read ({one_line(error)}): it must be a method without "
                f"arguments that returns {choices.total} flags, one for each option"
            ) from error
        require_masks(masks, choices)
        return masks

    return read


def _have_masks(env: VecEnv) -> bool:
    """Say whether all environments have the method; vector environments of others may answer in any way."""
    within = env
    while isinstance(within, VecEnvWrapper):
        within = within.venv
    try:
        if isinstance(within, SubprocVecEnv):  # methods of other processes cannot be looked at
            return env.has_attr("action_masks")
        return all(callable(method) for method in env.get_attr("action_masks"))
    except Exception:
        return False


def no_masks() -> None:
    """Read nothing: every option is allowed."""


def require_masks(masks: NDArray[np.bool_], choices: Choices) -> None:
    """Refuse masks that do not fit the actions, or leave no option."""
    if masks.shape[-1] != choices.total:
        raise InvalidValue(
            f"action_masks gave {plural(masks.shape[-1], 'value')}: it must give one for each of "
            f"{plural(choices.total, 'option')}"
        )
    starts = np.cumsum((0, *choices.sizes[:-1]))
    empty = np.argwhere(~np.logical_or.reduceat(masks, starts, axis=-1))
    if empty.size:
        raise InvalidValue(f"action_masks of environment {empty[0, 0]} forbids all options of choice {empty[0, 1]}")
