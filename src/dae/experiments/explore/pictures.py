"""Pictures of an episode, as small as a page needs them: few colours as cells of a grid, all others as images."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dae.explorer.data import Grid, Images

_MOST_CELLS = 4_096
_MOST_COLOURS = 256
_LARGEST = (320, 240)  # width and height of an image
_QUALITY = 60  # of WebP, at which a frame of an Atari game takes one or two kilobytes
Picture = NDArray[np.uint8]


class PictureBook:
    """Pictures (height, width, 3) of one size, kept as cells for as long as they consist of them."""

    def __init__(self) -> None:
        self._cell = 0  # width of a cell in pixels; 0: not known yet, 1: there are none
        self._colours: dict[bytes, int] = {}
        self._grids: list[Picture] = []
        self._images: dict[bytes, int] = {}
        self._index: list[int] = []
        self._size = (0, 0)

    def add(self, picture: Picture) -> None:
        """Keep one more."""
        if self._cell == 0:
            self._cell = _cell_size(picture)
        if self._cell > 1 and (cells := self._as_cells(picture)) is not None:
            self._grids.append(cells)
            return
        if self._cell > 1:
            self._give_up_cells()
        self._add_image(picture)

    def bound(self) -> Grid | Images | None:
        """Return all of them; None if there are none."""
        if self._grids:
            return Grid([f"#{colour.hex()}" for colour in self._colours], np.stack(self._grids))
        if self._images:
            return Images("image/webp", self._size, list(self._images), np.array(self._index, np.int32))
        return None

    def _as_cells(self, picture: Picture) -> Picture | None:
        small = picture[:: self._cell, :: self._cell]
        if not np.array_equal(_enlarged(small, self._cell), picture):
            return None
        flat = small.reshape(-1, 3)
        numbers = [self._colours.setdefault(colour.tobytes(), len(self._colours)) for colour in flat]
        if len(self._colours) > _MOST_COLOURS:
            return None
        return np.array(numbers, np.uint8).reshape(small.shape[:2])

    def _give_up_cells(self) -> None:
        palette = np.array([list(colour) for colour in self._colours], np.uint8)
        for grid in self._grids:
            self._add_image(_enlarged(palette[grid], self._cell))
        self._grids, self._cell = [], 1

    def _add_image(self, picture: Picture) -> None:
        image = Image.fromarray(picture)
        scale = min(1.0, _LARGEST[0] / image.width, _LARGEST[1] / image.height)
        self._size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        written = io.BytesIO()
        image.resize(self._size, Image.Resampling.BOX).save(written, "webp", quality=_QUALITY, method=4)
        self._index.append(self._images.setdefault(written.getvalue(), len(self._images)))


def _cell_size(picture: Picture) -> int:
    """Return the width of the square cells that a picture consists of, 1 if there are too many."""
    height, width = picture.shape[:2]
    for size in range(min(height, width), 1, -1):
        if height % size or width % size or height * width > _MOST_CELLS * size**2:
            continue
        if np.array_equal(_enlarged(picture[::size, ::size], size), picture):
            return size
    return 1


def _enlarged(small: Picture, by: int) -> Picture:
    return small.repeat(by, 0).repeat(by, 1)
