"""The scores of a run's episodes, in the format of Stable-Baselines3's Monitor with one more column, the frame."""

import csv
import io
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Episodes:
    """The completed episodes of a run, in the order they ended."""

    scores: NDArray[np.float64]
    lengths: NDArray[np.int64]
    seconds: NDArray[np.float64]  # since the run began, waiting for a resume left out
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


class EpisodeLog:
    """The file while a run writes it. Lines are appended; a resume cuts it back to where its checkpoint was."""

    def __init__(self, path: Path, env_id: str, resume_at: int | None) -> None:
        self.path = path
        if resume_at is None:
            header = json.dumps({"t_start": time.time(), "env_id": env_id})
            path.write_text(f"#{header}\nr,l,t,frames\n")
        else:
            with path.open("r+b") as file:
                file.truncate(resume_at)
        self._file = path.open("a", newline="")

    def append(self, score: float, length: int, seconds: float, frames: int) -> None:
        """Add an episode; it reaches the file with `flush`."""
        self._file.write(f"{score!r},{length},{seconds:.3f},{frames}\n")

    def flush(self) -> int:
        """Bring all lines to the disk and return the size of the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_episodes(path: Path) -> Episodes:
    """Read an episode file of a run; a torn last line, from a run that was killed just then, is left out."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO("\n".join(lines[1:]))))

    def column(name: str, dtype: type) -> NDArray[Any]:
        values: Sequence[str] = [row[name] for row in rows]
        return np.array(values, np.float64).astype(dtype)

    return Episodes(
        scores=column("r", np.float64),
        lengths=column("l", np.int64),
        seconds=column("t", np.float64),
        frames=column("frames", np.int64),
    )
