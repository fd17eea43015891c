"""Checks for NaN and infinity: training stops before it learns from one, and reports where it came from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor


class NotFiniteError(ArithmeticError):
    """A number that is NaN or infinite where training needs a finite one."""


def require_finite(observations: Any, rewards: Any, step: int) -> None:
    """Refuse NaN and infinity from an environment, and name the environment and the step."""
    if not np.isfinite(rewards).all():
        index = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise NotFiniteError(f"environment {index} gave the reward {rewards[index]} at step {step}: it must be finite")
    require_finite_observations(observations, step)


def require_finite_observations(observations: Any, step: int, environments: Any = None) -> None:
    """Refuse observations with NaN or infinity; they are those of some `environments`, or of all."""
    parts = observations.items() if isinstance(observations, dict) else [("", observations)]
    for name, part in parts:
        if np.issubdtype(part.dtype, np.floating) and not np.isfinite(part).all():
            index = int(np.argwhere(~np.isfinite(part))[0, 0])
            what = f"observation {name}".strip()
            raise NotFiniteError(
                f"environment {index if environments is None else environments[index]} gave an {what} with NaN or "
                f"infinity at step {step}"
            )


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of a tensor with NaN or infinity in it, if there is one."""
    return next((name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())), None)


def guarded_step(optimizer: torch.optim.Optimizer, broken: Tensor) -> None:
    """Step, unless `broken` is true. A fused optimizer decides on the device, without waiting for it."""
    if all(group.get("fused") for group in optimizer.param_groups):
        optimizer.grad_scale = None  # type: ignore[attr-defined]
        optimizer.found_inf = broken.float()  # type: ignore[attr-defined]
        optimizer.step()
    elif not bool(broken):
        optimizer.step()
