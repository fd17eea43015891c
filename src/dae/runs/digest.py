"""The episodes of a finished run in short: everything that reports show of them, in a few kilobytes."""

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.files import read_file
from dae.runs.episodes import LARGEST_SCORE, Episodes, bin_of
from dae.serialization import BadData, parse_json

BINS = 100  # of the learning curve: each is 1 % of the frames, as the normalisation uses too
# What curves are drawn against: all frames until an episode ended, or those of the episodes that had ended by then.
Axis = Literal["frames", "episodes"]
_LARGEST = 2**20  # bytes
_Column = tuple[float | None, ...]  # None: no episode ended in this part


@dataclass(frozen=True)
class Digest:
    """The scores of a run, and its curves in `BINS` equal parts of the frames; as exact as all its episodes."""

    episodes: int
    overall: float  # mean score of all episodes
    last: float  # mean score of the final 100
    scores: _Column  # mean score of the episodes that ended in each part
    scores_by_episodes: _Column  # the same, where frames are those of completed episodes
    seconds: _Column  # when the last episode of each part ended

    def curve(self, axis: Axis) -> NDArray[np.float64]:
        """Return the mean score in each part of an axis, NaN where no episode ended."""
        return np.array(self.scores if axis == "frames" else self.scores_by_episodes, np.float64)

    @staticmethod
    def of(episodes: Episodes, frames: int, frames_per_step: int = 1) -> "Digest":
        """Reduce the episodes of a run of so many frames; at least one has ended."""
        completed = episodes.lengths.cumsum() * frames_per_step
        place = bin_of(episodes.frames, BINS, frames)
        last = np.searchsorted(place, np.arange(BINS), side="right") - 1  # episode of each part, or of one before
        seconds = np.where(np.isin(np.arange(BINS), place), episodes.seconds[last], np.nan)
        return Digest(
            len(episodes),
            episodes.overall,
            episodes.last,
            _column(episodes.mean_scores(BINS, frames)),
            _column(episodes.mean_scores(BINS, frames, completed)),
            _column(seconds),
        )

    def to_bytes(self) -> bytes:
        """Return the digest as a file has it."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False).encode() + b"\n"


def read_digest(path: Path) -> Digest:
    """Read a digest."""
    try:
        digest = parse_json(read_file(path, _LARGEST), Digest)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except BadData as error:
        raise UserError(f"{path} is damaged: {one_line(error)}") from error
    scores = [digest.overall, digest.last, *digest.scores, *digest.scores_by_episodes]
    columns = (digest.scores, digest.scores_by_episodes, digest.seconds)
    if (
        digest.episodes < 1
        or not all(len(column) == BINS and any(value is not None for value in column) for column in columns)
        or [score is None for score in digest.scores] != [second is None for second in digest.seconds]
        or not all(abs(score) <= LARGEST_SCORE for score in scores if score is not None)
        or not all(second >= 0 for second in digest.seconds if second is not None)
    ):
        raise UserError(f"{path} is damaged: it has numbers that no run can have")
    return digest


def _column(numbers: NDArray[np.float64]) -> _Column:
    values = cast("list[float]", numbers.tolist())
    return tuple(None if math.isnan(value) else value for value in values)
