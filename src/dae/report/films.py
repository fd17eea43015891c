"""Films of runs: one for each cell, for the page. The files are strangers': none is shown before it was looked into."""

import base64
import contextlib
import io
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dae.errors import one_line
from dae.files import read_file
from dae.report.cells import Cell
from dae.runs import RunFolder

LARGEST = 1_500_000  # bytes of a film
_MOST_ON_PAGE = 24_000_000  # bytes of all films together: a page must still open on a phone
_LARGEST_SIDE = 2_000  # pixels
_STILL = 24  # the frame that stands for a film, if it has as many: at the start there is little to see


class _TooLarge(ValueError):
    """A film of too many pixels."""


@dataclass(frozen=True)
class Film:
    """A film and the picture that stands for it, as addresses with everything in them."""

    cell: Cell
    path: str
    still: str
    moving: str
    size: tuple[int, int]


def find_films(cells: Iterable[Cell]) -> tuple[list[Film], list[str]]:
    """Return a film of the first run in each cell that has one, and say which are not shown, and why."""
    films, notes, room = [], [], _MOST_ON_PAGE
    for cell in cells:
        for path in (path for run in cell.runs for path in _candidates(Path(run.path))):
            try:
                content = read_file(path, LARGEST)
                if len(content) > room:
                    raise ValueError("the page has no room for more")
                still, size = _look_into(content)
            except (OSError, ValueError) as problem:
                reason = getattr(problem, "strerror", None) or one_line(problem)
                notes.append(f"{path} is not shown: {reason}.")
                continue
            room -= len(content)
            films.append(Film(cell, str(path), _address("png", still), _address("gif", content), size))
            break
    return films, notes


def _candidates(run: Path) -> list[Path]:
    """Return the films that training and `dae play` have left in a run's folder."""
    played = run / "play"
    inside = [] if played.is_symlink() else sorted(played.glob("episode-*.gif"))
    return [path for path in (RunFolder(run).film, *inside) if os.path.lexists(path)]


def _look_into(content: bytes) -> tuple[bytes, tuple[int, int]]:
    """Return a still picture of a film, as PNG, and its size; a ValueError says why it is not a film."""
    from PIL import Image

    if not content.startswith((b"GIF87a", b"GIF89a")):
        raise ValueError("it is not a GIF")
    try:
        _require_small(struct.unpack("<HH", content[6:10]))  # before Pillow reserves memory for it
        with Image.open(io.BytesIO(content), formats=["GIF"]) as film:
            still, size = film.convert("RGB"), film.size
            with contextlib.suppress(EOFError):  # it has fewer frames
                for frame in range(1, _STILL + 1):
                    film.seek(frame)
                    _require_small(film.size)
                    still = film.convert("RGB")
    except _TooLarge:
        raise
    except Exception as problem:  # Pillow's own, of many kinds; their texts differ from run to run
        raise ValueError("it cannot be decoded") from problem
    written = io.BytesIO()
    still.quantize(64, dither=Image.Dither.NONE).save(written, "png", optimize=True)
    return written.getvalue(), size


def _require_small(size: tuple[int, int]) -> None:
    if max(size) > _LARGEST_SIDE:
        raise _TooLarge(f"it has {size[0]:,} × {size[1]:,} pixels, more than {_LARGEST_SIDE:,} a side")


def _address(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
