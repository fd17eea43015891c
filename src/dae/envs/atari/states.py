"""Games as data: their actions, from which they follow, and what they show."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dae.envs.atari.game import N_STACK, SIZE, Progress
from dae.errors import UserError
from dae.rules import NATURAL, require
from dae.serialization import BadData, from_bytes, to_bytes
from dae.text import plural


def written(progress: Sequence[Progress | None], stacks: NDArray[np.uint8]) -> bytes:
    """Return games as bytes; `stacks` are their last frames."""
    games = [game for game in progress if game is not None]
    if len(games) < len(progress):
        raise UserError(
            "a game that was put back with a new seed does not follow from its actions, so its state cannot be taken: "
            "put it back without seeds, or wait for the next game"
        )
    return to_bytes(
        {
            "seeds": np.array([game.seed for game in games], np.uint64),
            "numbers": np.array([game.number for game in games], np.int64),
            "scores": np.array([game.score for game in games], np.float64),
            "steps": np.array([len(game.actions) for game in games], np.int64),
            "actions": np.frombuffer(b"".join(game.actions for game in games), np.uint8),
            "observations": stacks,
        }
    )


def read(content: bytes, count: int) -> tuple[list[Progress], NDArray[np.uint8]]:
    """Return the games, `count` of them, and the stacks that `written` was given."""
    stored = from_bytes(content)
    if not isinstance(stored, dict):
        raise BadData(f"it is not a snapshot, but a {type(stored).__name__}")
    if "seed" in stored:  # checkpoints of older versions have one for all games
        require("seed", stored["seed"], NATURAL)
        stored["seeds"] = np.array([(stored["seed"], i) for i in range(count)], np.uint64)
    arrays = {
        "seeds": ((count, 2), np.uint64),
        "numbers": ((count,), np.int64),
        "scores": ((count,), np.float64),
        "steps": ((count,), np.int64),
        "actions": (None, np.uint8),
        "observations": ((count, N_STACK, SIZE, SIZE), np.uint8),
    }
    for name, (shape, kind) in arrays.items():
        found = stored.get(name)
        if not isinstance(found, np.ndarray) or found.dtype != kind or shape not in (None, found.shape):
            raise BadData(f"it is not a snapshot of {plural(count, 'game')}: its {name} are something else")
    ends = stored["steps"].cumsum()
    if stored["steps"].min() < 0 or ends[-1] != stored["actions"].size or stored["numbers"].min() < 0:
        raise BadData("its games have other lengths than it says")
    actions = stored["actions"].tobytes()
    columns = (stored[name].tolist() for name in ("seeds", "numbers", "scores", "steps"))
    games = [
        Progress(tuple(seed), number, actions[end - steps : end], score)
        for seed, number, score, steps, end in zip(*columns, ends.tolist(), strict=True)
    ]
    return games, stored["observations"]
