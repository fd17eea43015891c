"""Pictures of MinAtar states: every channel has its colour, every cell is a crisp square."""

import numpy as np
from numpy.typing import NDArray

SCALE = 24  # width of a cell in pixels
_BACKGROUND = (18, 18, 24)
_GRID = (28, 28, 36)


def render(
    observations: NDArray[np.bool_], colours: list[tuple[int, int, int]], scale: int = SCALE
) -> NDArray[np.uint8]:
    """Return RGB pictures (N, 10·scale, 10·scale, 3) of observations (N, C, 10, 10).

    Where several channels are set the last one shows, as in the package's own display.
    """
    palette = np.array([_BACKGROUND, *colours], np.uint8)
    order = np.arange(1, len(colours) + 1)[:, None, None]
    pictures: NDArray[np.uint8] = palette[(observations * order).max(1)]
    pictures = pictures.repeat(scale, axis=1).repeat(scale, axis=2)
    if scale >= 8:
        pictures[:, ::scale] = _GRID
        pictures[:, :, ::scale] = _GRID
    return pictures
