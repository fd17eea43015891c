"""The layout of a game's state: one record of small integers per environment, so that a batch is one plain array."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Field(NamedTuple):
    """An integer of the state, or an array of them, with the values it may take."""

    name: str
    low: int
    high: int
    shape: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype[np.signedinteger[Any]]:
        """The smallest signed integer type that holds the values."""
        return np.promote_types(np.min_scalar_type(min(self.low, -1)), np.min_scalar_type(-self.high - 1))


BOOKKEEPING = (
    Field("last_action", 0, 5),
    Field("episode_length", 0, 2**31 - 1),
    Field("episode_return", 0, 2**31 - 1),
)
RANDOM_STREAM = [("rng0", np.uint64), ("rng1", np.uint64)]


def state_dtype(fields: tuple[Field, ...]) -> np.dtype[np.void]:
    """Return the record type of a game with these fields: its random stream, bookkeeping, and the game itself."""
    return np.dtype(RANDOM_STREAM + [(f.name, f.dtype, f.shape) for f in BOOKKEEPING + fields], align=True)


def require_valid(states: NDArray[np.void], fields: tuple[Field, ...]) -> None:
    """Refuse a state with numbers that no game can have: compiled code would index outside its arrays."""
    if ((states["rng0"] | states["rng1"]) == 0).any():
        raise ValueError("state holds an empty random stream; is this a snapshot from get_state()?")
    for field in BOOKKEEPING + fields:
        values = states[field.name]
        if values.size and not (field.low <= values.min() and values.max() <= field.high):
            raise ValueError(
                f"state holds {field.name} from {values.min()} to {values.max()}: "
                f"it must lie in [{field.low}, {field.high}]; is this a snapshot from get_state()?"
            )
