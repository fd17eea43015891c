"""The scores of a run's episodes, in the format of Stable-Baselines3's Monitor with one more column, the frame."""

import io
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.files import read_file

_LARGEST = 2**29  # bytes; 20 million episodes
_LARGEST_SCORE = 1e150  # the squares of larger ones are no numbers
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


class EpisodeLog:
    """The file while a run writes it. Lines are appended; a resume cuts it back to where its checkpoint was."""

    def __init__(self, path: Path, env_id: str, resume_at: int | None) -> None:
        self.path = path
        if resume_at is None:
            header = json.dumps({"t_start": time.time(), "env_id": env_id})
            path.write_text(f"#{header}\n{','.join(_COLUMNS)}\n", encoding="utf-8")
        else:
            with path.open("r+b") as file:
                if file.seek(0, os.SEEK_END) < resume_at:
                    raise UserError(
                        f"{path} is shorter than when the newest checkpoint was taken: episodes are lost; restore it "
                        "from a backup, or move the run's folder away to start from scratch"
                    )
                file.truncate(resume_at)
        self._file = path.open("a", newline="")

    def append(self, score: float, length: int, seconds: float, frames: int) -> None:
        """Add an episode; it reaches the file with `flush`."""
        self._file.write(f"{score!r},{length},{seconds:.3f},{frames}\n")

    def flush(self) -> int:
        """Flush all lines to the disk and return the size of the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_episodes(path: Path, *, whole: bool = False) -> Episodes:
    """Read an episode file of a run; a torn last line, from a run that was killed just then, is left out.

    Damage anywhere else is an error: a missing score must not look like an episode that never happened. A file that
    must be `whole` is there, and has no torn line either.
    """
    try:
        content = read_file(path, _LARGEST)
    except FileNotFoundError as error:
        if whole:
            raise UserError(f"{path} is missing") from error
        content = b""
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if whole and not content.endswith(b"\n"):
        raise UserError(f"{path} ends within a line")
    header, _, rest = content[: content.rfind(b"\n") + 1].partition(b"\n")
    columns, found, rows = rest.partition(b"\n")
    if not found:  # torn within the two lines of the header
        return _from_table(np.zeros((0, len(_COLUMNS))), _COLUMNS)
    names = columns.decode(errors="replace").split(",")
    if not set(_COLUMNS) <= set(names) or not header.startswith(b"#"):
        raise UserError(f"{path} is not the episode file of a run: its columns are {','.join(names)[:80]!r}")
    if not rows:
        return _from_table(np.zeros((0, len(names))), names)
    try:
        table = np.loadtxt(io.BytesIO(rows), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {one_line(error)}") from error
    if rows.count(b"\n") != len(table) or table.shape[1] != len(names):
        raise UserError(f"{path} is damaged: it has lines that are not episodes")
    _require_possible(path, dict(zip(names, table.T, strict=True)))
    return _from_table(table, names)


def _require_possible(path: Path, columns: dict[str, NDArray[np.float64]]) -> None:
    """Refuse numbers that no run writes."""
    counts = np.stack([columns["l"], columns["frames"]])
    possible = (counts >= 1).all() and (counts < 2**53).all() and (counts == counts.round()).all()
    if (
        not possible
        or not (columns["t"] >= 0).all()
        or not (np.abs(columns["r"]) <= _LARGEST_SCORE).all()
        or not all(np.isfinite(column).all() for column in columns.values())
    ):
        raise UserError(f"{path} is damaged: it has numbers that no episode can have")
    if (np.diff(columns["frames"]) < 0).any():
        raise UserError(f"{path} is damaged: its episodes are not in the order of their frames")


def _from_table(table: NDArray[np.float64], names: Sequence[str]) -> Episodes:
    column = {name: table[:, i] for i, name in enumerate(names)}
    return Episodes(
        scores=column["r"].copy(),
        lengths=column["l"].astype(np.int64),
        seconds=column["t"].copy(),
        frames=column["frames"].astype(np.int64),
    )
