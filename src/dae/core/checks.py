"""Argument checks of the core functions: an error names the argument, its value and the rule.

They look at shapes, dtypes and Python numbers only. None reads a tensor's contents, so none makes a GPU wait.
"""

import math
from numbers import Real

import torch
from torch import Tensor


def require_float(**tensors: Tensor) -> None:
    """All tensors are floating point, of one dtype."""
    reference_name, reference = next(iter(tensors.items()))
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: it must be a torch.Tensor")
        if not tensor.is_floating_point():
            raise TypeError(
                f"{name} has dtype {tensor.dtype}: it must be a floating-point dtype; convert with .float()"
            )
        if tensor.dtype != reference.dtype:
            raise TypeError(
                f"{name} has dtype {tensor.dtype}: it must be {reference.dtype}, the dtype of {reference_name}"
            )


def require_bool(**tensors: Tensor) -> None:
    """All tensors are flags."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: it must be a torch.Tensor")
        if tensor.dtype != torch.bool:
            raise TypeError(f"{name} has dtype {tensor.dtype}: it must be torch.bool; convert with .bool()")


def require_same_shape(**tensors: Tensor) -> None:
    """All tensors have the shape of the first."""
    reference_name, reference = next(iter(tensors.items()))
    for name, tensor in tensors.items():
        if tensor.shape != reference.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}: "
                f"it must be {tuple(reference.shape)}, the shape of {reference_name}"
            )


def require_rows(name: str, tensor: Tensor) -> None:
    """The tensor is (B, T) with at least one actor and one step."""
    if tensor.ndim != 2 or 0 in tensor.shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must be (B, T) with B >= 1 and T >= 1")


def require_actions(name: str, tensor: Tensor) -> None:
    """The tensor's last axis runs over the actions."""
    if tensor.ndim == 0 or tensor.shape[-1] == 0:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: it must be (..., A) with A >= 1 actions on the last axis"
        )


def require_in_range(name: str, number: float, low: float, high: float = math.inf) -> None:
    """The number lies in [low, high]; NaN does not."""
    if not isinstance(number, Real) or not low <= number <= high:
        rule = f"in [{low:g}, {high:g}]" if math.isfinite(high) else f"at least {low:g}"
        raise ValueError(f"{name} is {number!r}: it must be a number {rule}")
