"""The results of the chain experiment: one tidy file, from which it also continues."""

import csv
import dataclasses
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.experiments.synthetic.config import SyntheticConfig
from dae.files import read_file, write_atomically
from dae.runs import Provenance
from dae.runs.settings import require_same
from dae.serialization import BadData, parse_json
from dae.text import short_text

Numbers = NDArray[np.float64]
_LARGEST_NUMBER = float(np.finfo(np.float32).max)
_LARGEST_SETTINGS, _LARGEST_TABLE = 2**20, 2**31  # bytes
_COLUMNS = ("method", "seed", "iteration", "mse", "expected_return")


@dataclass(frozen=True)
class Curve:
    """Mean and standard error over seeds, by iteration."""

    mean: Numbers
    error: Numbers  # NaN with a single seed

    def at(self, iteration: int) -> str:
        return short_text(float(self.mean[iteration - 1]), float(self.error[iteration - 1]))


class Results:
    """Curves of (mean squared error, expected return) by method and seed; all have the same length."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder, self._settings = folder, settings
        self._curves: dict[tuple[str, int], Numbers] = {}

    @property
    def table(self) -> Path:
        return self.folder / "synthetic.csv"

    @property
    def means(self) -> Path:
        return self.folder / "means.csv"

    def open(self, made_with: Provenance) -> None:
        """Load the results that the folder already holds; refuse it if its settings differ."""
        described = self.folder / "settings.json"
        if self.table.exists() and not described.exists():
            raise UserError(f"{self.table} exists without its settings.json: choose another --out")
        if not described.exists():
            content = json.dumps({"settings": self._settings, "made_with": dataclasses.asdict(made_with)}, indent=2)
            write_atomically(described, content.encode() + b"\n")
            return
        try:
            # A setting that is not there is as it was before it existed.
            written = parse_json(read_file(described, _LARGEST_SETTINGS), dict[str, dict[str, Any]])
            stored = SyntheticConfig().to_json() | written["settings"]
        except (BadData, KeyError, OSError) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise UserError(f"{described} cannot be read ({reason}): choose another --out") from error
        require_same(self.folder, stored, self._settings, remedy="another --out")
        if self.table.exists():
            self._read()

    def missing(self, method: str, seeds: int) -> list[int]:
        return [seed for seed in range(seeds) if (method, seed) not in self._curves]

    def add(self, method: str, seeds: list[int], errors: Numbers, returns: Numbers) -> None:
        """Add (seeds, iterations) of both, and write everything."""
        for k, seed in enumerate(seeds):
            self._curves[method, seed] = np.stack([errors[k], returns[k]], -1)
        rows = [
            f"{method},{seed},{i},{mse:.9g},{expected:.9g}"
            for (method, seed), curve in sorted(self._curves.items())
            for i, (mse, expected) in enumerate(curve.tolist(), 1)
        ]
        write_atomically(self.table, "\n".join([",".join(_COLUMNS), *rows, ""]).encode())

    def curves(self, method: str, seeds: int) -> tuple[Curve, Curve]:
        """Return the curves of mean squared error and expected return."""
        stacked = np.stack([self._curves[method, seed] for seed in range(seeds)])
        mean = stacked.mean(0)
        error = stacked.std(0, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.full_like(mean, np.nan)
        return Curve(mean[:, 0], error[:, 0]), Curve(mean[:, 1], error[:, 1])

    def write_means(self, methods: tuple[str, ...], seeds: int) -> None:
        lines = ["method,iteration,seeds,mse_mean,mse_standard_error,return_mean,return_standard_error"]
        for method in methods:
            mse, expected = self.curves(method, seeds)
            for i, row in enumerate(zip(mse.mean, mse.error, expected.mean, expected.error, strict=True), 1):
                lines.append(f"{method},{i},{seeds}," + ",".join(f"{number:.5g}" for number in row))
        write_atomically(self.means, "\n".join([*lines, ""]).encode())

    def _read(self) -> None:
        length = self._settings["iterations"]
        collected: dict[tuple[str, int], list[tuple[float, float]]] = {}
        try:
            reader = csv.reader(io.StringIO(read_file(self.table, _LARGEST_TABLE).decode()))
            if tuple(next(reader)) != _COLUMNS:
                raise ValueError("other columns")
            for method, seed, iteration, mse, expected in reader:
                rows = collected.setdefault((method, int(seed)), [])
                rows.append((float(mse), float(expected)))
                if int(iteration) != len(rows) or not all(abs(number) <= _LARGEST_NUMBER for number in rows[-1]):
                    raise ValueError(f"iteration {iteration} of {method}, seed {seed}")
            if any(len(rows) != length for rows in collected.values()):
                raise ValueError("rows are missing")
        except (ValueError, StopIteration, OSError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise UserError(
                f"{self.table} was damaged or changed ({reason}): move it to start from scratch, or choose another "
                "--out"
            ) from error
        # They were computed in single precision: this restores exactly the numbers that were written.
        self._curves = {key: np.array(rows, np.float32).astype(np.float64) for key, rows in collected.items()}
