"""Pictures of an episode, as small as a page needs them: few colours as cells of a grid, all others as images."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dae.explorer.data import Grid, Images

_LARGEST = (320, 240)  # width and height of an image
_QUALITY = 60  # of WebP, at which a frame of an Atari game takes one or two kilobytes
Picture = NDArray[np.uint8]


class PictureBook:
    """Pictures (height, width, 3) of one size; those that consist of square cells are kept as these."""

    def __init__(self, cell_size: int = 1) -> None:
        self._cell_size = cell_size
        self._colours: dict[bytes, int] = {}
        self._grids: list[Picture] = []
        self._images: dict[bytes, int] = {}
        self._index: list[int] = []
        self._size = (0, 0)

    def add(self, picture: Picture) -> None:
        """Keep one more."""
        if self._cell_size == 1:
            self._add_image(picture)
            return
        middle = slice(self._cell_size // 2, None, self._cell_size)  # lines between cells are left out
        cells = picture[middle, middle]
        numbers = [self._colours.setdefault(colour.tobytes(), len(self._colours)) for colour in cells.reshape(-1, 3)]
        self._grids.append(np.array(numbers, np.uint8).reshape(cells.shape[:2]))

    def bound(self) -> Grid | Images | None:
        """Return all of them; None if there are none."""
        if self._grids:
            return Grid([f"#{colour.hex()}" for colour in self._colours], np.stack(self._grids))
        if self._images:
            return Images("image/webp", self._size, list(self._images), np.array(self._index, np.int32))
        return None

    def _add_image(self, picture: Picture) -> None:
        image = Image.fromarray(picture)
        scale = min(1.0, _LARGEST[0] / image.width, _LARGEST[1] / image.height)
        self._size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        written = io.BytesIO()
        image.resize(self._size, Image.Resampling.BOX).save(written, "webp", quality=_QUALITY, method=4)
        self._index.append(self._images.setdefault(written.getvalue(), len(self._images)))
