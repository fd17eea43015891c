"""Arrays in a file: NumPy's npz, the same bytes for the same content, whose checksums find damage when it is read."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.errors import one_line
from dae.files import read_file, write_atomically

_LARGEST = 2**33  # bytes


class Damaged(Exception):
    """A file that is not what was written."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in a file; nothing in it can run code."""
    try:
        with np.load(io.BytesIO(read_file(path, _LARGEST)), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise Damaged("it is missing") from error
    except (
        OSError,
        ValueError,
        EOFError,
        AttributeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise Damaged(getattr(error, "strerror", None) or one_line(error)) from error
    except MemoryError:
        raise Damaged("it claims to hold more than fits into memory") from None
