"""The scores of a run's episodes, in the format of Stable-Baselines3's Monitor with one more column, the frame."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError
from dae.runs.tables import AppendedTable, Columns, read_table

LARGEST_SCORE = 1e150  # the squares of larger ones are no numbers
_COLUMNS = ("r", "l", "t", "frames")  # score, length, seconds, frames


@dataclass(frozen=True)
class Episodes:
    """The completed episodes of a run, in the order they ended."""

    scores: NDArray[np.float64]
    lengths: NDArray[np.int64]
    seconds: NDArray[np.float64]  # since the run began, without the pauses before a resume
    frames: NDArray[np.int64]  # of all actors, when the episode ended

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def overall(self) -> float:
        """The paper's Overall: the mean score of all completed episodes; NaN if there are none."""
        return float(self.scores.mean()) if len(self) else float("nan")

    @property
    def last(self) -> float:
        """The paper's Last: the mean score of the final 100 episodes; NaN if there are none."""
        return float(self.scores[-100:].mean()) if len(self) else float("nan")

    def mean_scores(self, bins: int, frames: int, ended: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Return the mean score of the episodes that ended in each of `bins` equal parts of `frames`, NaN if none did.

        `ended` is when each episode did, if not by the frames of all actors.
        """
        place = bin_of(self.frames if ended is None else ended, bins, frames)
        count = np.bincount(place, minlength=bins)
        total = np.bincount(place, self.scores, bins)
        means: NDArray[np.float64] = np.divide(total, count, out=np.full(bins, np.nan), where=count > 0)
        return means


def bin_of(ended: NDArray[np.int64], bins: int, frames: int) -> NDArray[np.int64]:
    """Return in which of `bins` equal parts of `frames` something ended; each has its end, not its beginning.

    What ends after them (in the last iteration, and in the finishing phase) is in the last part.
    """
    place: NDArray[np.int64] = np.clip(-(-ended * bins // frames) - 1, 0, bins - 1)
    return place


def fill(curves: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Give empty bins the value of the bin before, those before the first episode the value of the first.

    Returns also the first bin in which all curves have seen an episode.
    """
    known = ~np.isnan(curves)
    first = known.argmax(-1)
    place = np.maximum.accumulate(np.where(known, np.arange(curves.shape[-1]), 0), -1)
    filled: NDArray[np.float64] = np.take_along_axis(curves, np.maximum(place, first[..., None]), -1)
    return filled, int(first.max())


class EpisodeLog(AppendedTable):
    """The file of episodes while a run writes it."""

    def __init__(self, path: Path, env_id: str, resume_at: int | None) -> None:
        super().__init__(path, _COLUMNS, env_id, resume_at)

    def add(self, score: float, length: int, seconds: float, frames: int) -> None:
        """Add an episode."""
        self.append(f"{score!r},{length},{seconds:.3f},{frames}")


def read_episodes(path: Path, *, whole: bool = False) -> Episodes:
    """Read the episodes of a run; see `read_table` for what is damage, and what it is to be `whole`."""
    column = read_table(path, _COLUMNS, what="episodes", whole=whole)
    _require_possible(path, column)
    return Episodes(
        scores=column["r"],
        lengths=column["l"].astype(np.int64),
        seconds=column["t"],
        frames=column["frames"].astype(np.int64),
    )


def _require_possible(path: Path, columns: Columns) -> None:
    """Refuse numbers that no run writes."""
    counts = np.stack([columns["l"], columns["frames"]])
    possible = (counts >= 1).all() and (counts < 2**53).all() and (counts == counts.round()).all()
    if (
        not possible
        or not (columns["t"] >= 0).all()
        or not (np.abs(columns["r"]) <= LARGEST_SCORE).all()
        or not all(np.isfinite(column).all() for column in columns.values())
    ):
        raise UserError(f"{path} is damaged: it has numbers that no episode can have")
    if (np.diff(columns["frames"]) < 0).any():
        raise UserError(f"{path} is damaged: its episodes are not in the order of their frames")
