"""Tables that a run appends to while it trains: a header, the names of the columns, a line for each entry."""

import io
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dae.errors import UserError, one_line
from dae.files import read_file

_LARGEST = 2**29  # bytes; 20 million episodes
Columns = dict[str, NDArray[np.float64]]


class AppendedTable:
    """A table while a run writes it. Lines are appended; a resume cuts it back to where its checkpoint was."""

    def __init__(self, path: Path, columns: Sequence[str], env_id: str, resume_at: int | None) -> None:
        self.path = path
        if resume_at is None:
            header = json.dumps({"t_start": time.time(), "env_id": env_id})
            path.write_text(f"#{header}\n{','.join(columns)}\n", encoding="utf-8")
        else:
            with path.open("r+b") as file:
                if file.seek(0, os.SEEK_END) < resume_at:
                    raise UserError(
                        f"{path} is shorter than when the newest checkpoint was taken: entries are lost; restore it "
                        "from a backup, or move the run's folder away to start from scratch"
                    )
                file.truncate(resume_at)
        self._file = path.open("a", newline="")

    def append(self, line: str) -> None:
        """Add a line; it reaches the file with `flush`."""
        self._file.write(f"{line}\n")

    def flush(self) -> int:
        """Flush all lines to the disk and return the size of the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_table(path: Path, needed: Sequence[str], *, what: str, whole: bool = False) -> Columns:
    """Read the table of a run (`what` it lists: episodes); a torn last line, from a run that was killed, is left out.

    Damage anywhere else is an error: a missing entry must not look like one that never happened. A file that must be
    `whole` is there, and has no torn line either.
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
        return _columns(needed, np.zeros((0, len(needed))))
    names = columns.decode(errors="replace").split(",")
    if not set(needed) <= set(names) or not header.startswith(b"#"):
        raise UserError(f"{path} does not list the {what} of a run: its columns are {','.join(names)[:80]!r}")
    if not rows:
        return _columns(names, np.zeros((0, len(names))))
    try:
        table = np.loadtxt(io.BytesIO(rows), delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {one_line(error)}") from error
    if rows.count(b"\n") != len(table) or table.shape[1] != len(names):
        raise UserError(f"{path} is damaged: it has lines that are not {what}")
    return _columns(names, table)


def _columns(names: Sequence[str], table: NDArray[np.float64]) -> Columns:
    return {name: table[:, i].copy() for i, name in enumerate(names)}
