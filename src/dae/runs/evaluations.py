"""The evaluations of a run: scores of the agent in environments of their own, from time to time."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError
from dae.runs.tables import AppendedTable, read_table

_COLUMNS = ("frames", "score", "error", "length", "episodes")


@dataclass(frozen=True)
class Evaluations:
    """Mean scores, in the order of the frames after which they were measured."""

    frames: NDArray[np.int64]
    scores: NDArray[np.float64]
    errors: NDArray[np.float64]  # standard errors; NaN for one episode

    def __len__(self) -> int:
        return len(self.frames)


def standard_error(scores: NDArray[np.float64]) -> float:
    """Return the standard error of a mean of scores; one score has none."""
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else math.nan


class EvaluationLog(AppendedTable):
    """The file of evaluations while a run writes it."""

    def __init__(self, path: Path, env_id: str, resume_at: int | None) -> None:
        super().__init__(path, _COLUMNS, env_id, resume_at)

    def add(self, frames: int, scores: NDArray[np.float64], lengths: NDArray[np.float64]) -> None:
        """Add an evaluation of some episodes."""
        error = standard_error(scores)
        self.append(f"{frames},{float(scores.mean())!r},{error!r},{lengths.mean():.1f},{len(scores)}")


def read_evaluations(path: Path) -> Evaluations:
    """Read the evaluations of a run; there may be none."""
    column = read_table(path, _COLUMNS, what="evaluations")
    frames = column["frames"]
    if not (np.isfinite(frames).all() and (np.diff(frames) > 0).all() and np.isfinite(column["score"]).all()):
        raise UserError(f"{path} is damaged: it has numbers that no evaluation can have")
    return Evaluations(frames.astype(np.int64), column["score"], column["error"])
