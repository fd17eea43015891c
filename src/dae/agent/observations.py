"""Observations of several environments: an array with an axis for them, or a dictionary of such arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def pick(observations: Any, rows: Any) -> Any:
    """Return the observations of some environments."""
    if isinstance(observations, dict):
        return {name: part[rows] for name, part in observations.items()}
    return observations[rows]


def assign(observations: Any, rows: Any, new: Any) -> None:
    """Replace the observations of some environments."""
    if isinstance(observations, dict):
        for name, part in observations.items():
            part[rows] = new[name]
    else:
        observations[rows] = new


def stacked(single: Sequence[Any]) -> Any:
    """Put observations of one environment each together."""
    if isinstance(single[0], dict):
        return {name: np.stack([observation[name] for observation in single]) for name in single[0]}
    return np.stack(single)


def joined(pieces: Sequence[Any]) -> Any:
    """Put observations of several environments each together."""
    if isinstance(pieces[0], dict):
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return np.concatenate(pieces)
