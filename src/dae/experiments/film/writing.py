"""Writing films: GIF and MP4. Frames come one by one; the last one stays for a while."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from dae.errors import UserError

FPS = 12
_LAST_SECONDS = 1.5
_COLOURS, _SAMPLES = 64, 6


class CannotRecord(UserError):
    """Why there is no film of this environment."""


def write_film(path: Path, frames: Sequence[Image.Image]) -> None:
    """Write frames as an MP4 if the path says so, or as a GIF."""
    (_write_mp4 if path.suffix == ".mp4" else _write_gif)(path, frames)


def _write_gif(path: Path, frames: Sequence[Image.Image]) -> None:
    # One palette for all frames, taken from several of them, so that colours do not flicker.
    width, height = frames[0].size
    sheet = Image.new("RGB", (width, height * _SAMPLES))
    for k in range(_SAMPLES):
        sheet.paste(frames[k * (len(frames) - 1) // (_SAMPLES - 1)], (0, k * height))
    palette = sheet.quantize(_COLOURS, dither=Image.Dither.NONE)
    indexed = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    durations = [round(1000 / FPS)] * (len(frames) - 1) + [round(1000 * _LAST_SECONDS)]
    next(indexed).save(path, "GIF", save_all=True, append_images=indexed, duration=durations, loop=0)


def _write_mp4(path: Path, frames: Sequence[Image.Image]) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise CannotRecord(
            "MP4 needs the package imageio-ffmpeg: pip install imageio-ffmpeg, or write a GIF"
        ) from error
    size = (frames[0].width // 2 * 2, frames[0].height // 2 * 2)
    writer = imageio_ffmpeg.write_frames(str(path), size, fps=FPS, macro_block_size=2)
    writer.send(None)
    try:
        for frame in itertools.chain(frames, itertools.repeat(frames[-1], round(FPS * _LAST_SECONDS))):
            writer.send(np.ascontiguousarray(np.asarray(frame.crop((0, 0, *size)))))
    finally:
        writer.close()
