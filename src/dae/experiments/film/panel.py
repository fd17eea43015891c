"""The frames of a film: a picture of the state, and beside it a panel with numbers and bars."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from dae.experiments.film.episode import LARGEST, Episode, Moment, Thought
from dae.text import ordinal, short_number

_HEIGHT, _PANEL, _MARGIN = LARGEST[1], 330, 20
_BACKGROUND, _TAKEN, _AXIS = (24, 24, 30), (54, 54, 68), (90, 90, 102)
_INK, _FAINT = (235, 235, 240), (150, 150, 162)
_GOOD, _BAD, _PROBABILITY = (88, 178, 120), (222, 106, 94), (110, 150, 210)
_MOST_ROWS = 18  # the actions of an Atari game
_ROWS_TOP, _ROWS_BOTTOM, _HIGHEST_ROW = 116, _HEIGHT - 24, 30
# Columns of the panel, from its left margin.
_NAME, _PI_BAR, _PI_NUMBER, _A_NUMBER, _A_BAR, _END = 0, 92, 134, 172, 226, _PANEL - 2 * _MARGIN


class Frames(Sequence[Image.Image]):
    """The frames of an episode's film, each composed when it is asked for; the last one shows the final score."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        bars = [m.thought.advantages for m in episode.moments if m.thought.advantages is not None]
        # One scale for the whole film, so that a long bar is a moment that matters.
        self._largest = max((float(np.abs(bar).max(initial=0)) for bar in bars), default=0.0) or 1.0
        self._width = episode.moments[0].still.size[0]

    def __len__(self) -> int:
        return len(self._episode.moments) + 1

    def __iter__(self) -> Iterator[Image.Image]:
        return (self[k] for k in range(len(self)))

    @overload
    def __getitem__(self, k: int) -> Image.Image: ...

    @overload
    def __getitem__(self, k: slice) -> list[Image.Image]: ...

    def __getitem__(self, k: int | slice) -> Image.Image | list[Image.Image]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        moments = self._episode.moments
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        final = k == len(moments)
        moment = moments[min(k, len(moments) - 1)]
        score = self._episode.score if final else moment.score
        gained = score - (moments[k - 1].score if k else 0.0)
        return self._compose(moment, score, gained, final=final)

    def _compose(self, moment: Moment, score: float, gained: float, *, final: bool) -> Image.Image:
        canvas = Image.new("RGB", (self._width + _PANEL, _HEIGHT), _BACKGROUND)
        over = final and self._episode.last is not None  # a state in which nothing is done any more
        picture = (self._episode.last if over and self._episode.last is not None else moment.still).image()
        canvas.paste(picture, (0, (_HEIGHT - picture.height) // 2))
        draw = ImageDraw.Draw(canvas)
        draw.rectangle((self._width, 0, self._width + _PANEL, _HEIGHT), fill=_BACKGROUND)
        left = self._width + _MARGIN
        for y, text, colour, size in self._header(moment, score, final=final, over=over):
            draw.text((left, y), text, colour, _font(size))
        if gained:
            after = left + draw.textlength(f"score {short_number(score)}", _font(15)) + 12
            draw.text(
                (after, 48), f"{'+' * (gained > 0)}{short_number(gained)}", _GOOD if gained > 0 else _BAD, _font(15)
            )
        if not over:
            self._draw_actions(draw, left, moment.thought)
        return canvas

    def _header(
        self, moment: Moment, score: float, *, final: bool, over: bool
    ) -> Iterator[tuple[int, str, tuple[int, int, int], int]]:
        """Yield the lines at the top: height, text, colour and size."""
        episode = self._episode
        of = f"{episode.steps:,}" if episode.ended else f"the first {episode.steps:,}"
        yield 10, f"step {moment.step:,} of {of}", _INK, 15
        told = [f"every {ordinal(episode.stride)} step"] if episode.stride > 1 else []
        if final:
            told.append("the episode has ended" if episode.ended else "the episode goes on")
        yield 30, ", ".join(told), _FAINT, 11
        yield 48, f"score {short_number(score)}", _INK, 15
        if not over:
            yield 70, f"value {moment.thought.value:,.2f}", _FAINT, 15

    def _draw_actions(self, draw: ImageDraw.ImageDraw, left: int, thought: Thought) -> None:
        if thought.probabilities is None:
            _draw_numbers(draw, left, thought.action)
            return
        names, taken = self._episode.names, int(thought.action)
        rows = _rows(thought.probabilities, taken)
        modelled = thought.advantages is not None
        for x, text in ((_NAME, "action"), (_PI_BAR, "π"), *([(_A_NUMBER, "Â")] if modelled else [])):
            draw.text((left + x, _ROWS_TOP - 20), text, _FAINT, _font(13))
        height = min(_HIGHEST_ROW, (_ROWS_BOTTOM - _ROWS_TOP) / len(rows))
        for row, action in enumerate(rows):
            y = _ROWS_TOP + row * height
            if action == taken:
                _mark(draw, left, y, height)
            ink, font = _INK if action == taken else _FAINT, _font(_size(height))
            middle = y + height / 2
            draw.text((left + _NAME, middle), _fitting(draw, names[action], _PI_BAR - 8, font), ink, font, "lm")
            self._draw_row(draw, left, middle, height, thought, action, ink, font)
        scale = f", Â to ±{self._largest:.{_decimals(self._largest)}f}" if modelled else ""
        left_out = f"; {len(rows)} of {len(names)} actions" if len(rows) < len(names) else ""
        draw.text((left, _HEIGHT - 20), f"bars: π to 1{scale}{left_out}", _FAINT, _font(11))

    def _draw_row(
        self,
        draw: ImageDraw.ImageDraw,
        left: int,
        middle: float,
        height: float,
        thought: Thought,
        action: int,
        ink: tuple[int, int, int],
        font: ImageFont.FreeTypeFont,
    ) -> None:
        """Draw the numbers and bars of an action."""
        assert thought.probabilities is not None
        half = max(2.0, height / 2 - 5)
        probability = float(thought.probabilities[action])
        at = _PI_NUMBER if thought.advantages is not None else _END - 34  # where there is room, bars are longer
        start, room = left + _PI_BAR, at - _PI_BAR - 6
        draw.rectangle((start, middle - half, start + room * probability, middle + half), _PROBABILITY)
        draw.text((left + at, middle), f"{probability:.2f}", ink, font, "lm")
        if thought.advantages is None:
            return
        advantage = float(thought.advantages[action])
        text = f"{advantage:+.{_decimals(self._largest)}f}"
        draw.text((left + _A_BAR - 8, middle), text, ink, font, "rm")
        zero, side = left + (_A_BAR + _END) / 2, (_END - _A_BAR) / 2
        low, high = sorted((zero, zero + side * advantage / self._largest))
        draw.rectangle((low, middle - half, high, middle + half), _GOOD if advantage >= 0 else _BAD)
        draw.line((zero, middle - height / 2, zero, middle + height / 2), _AXIS)


def _rows(probabilities: NDArray[np.float32], taken: int) -> list[int]:
    """Return the actions to show, in their order: all, or the one that was taken and the most probable others."""
    if len(probabilities) <= _MOST_ROWS:
        return list(range(len(probabilities)))
    weights = probabilities.copy()
    weights[taken] = np.inf
    return sorted(np.argsort(-weights, kind="stable")[:_MOST_ROWS].tolist())


def _mark(draw: ImageDraw.ImageDraw, left: int, y: float, height: float) -> None:
    """Mark the row of the action that was taken."""
    draw.rectangle((left - 14, y, left + _END + 6, y + height - 1), _TAKEN)
    middle = y + height / 2
    draw.polygon([(left - 10, middle - 4), (left - 10, middle + 4), (left - 4, middle)], _INK)


def _draw_numbers(draw: ImageDraw.ImageDraw, left: int, action: NDArray[np.generic]) -> None:
    """Write an action that is made of several numbers."""
    numbers = np.ravel(action).tolist()
    draw.text((left, _ROWS_TOP - 20), "action", _FAINT, _font(13))
    shown = numbers if len(numbers) <= _MOST_ROWS else numbers[: _MOST_ROWS - 1]
    height = min(_HIGHEST_ROW, (_ROWS_BOTTOM - _ROWS_TOP) / (len(shown) + 1))
    font = _font(_size(height))
    lines = [f"{number:+.2f}" if isinstance(number, float) else f"{number}" for number in shown]
    if len(shown) < len(numbers):
        lines.append(f"and {len(numbers) - len(shown)} more")
    for row, line in enumerate(lines):
        draw.text((left, _ROWS_TOP + row * height), line, _INK, font)


def _fitting(draw: ImageDraw.ImageDraw, text: str, width: float, font: ImageFont.FreeTypeFont) -> str:
    """Return a text without its end, if it is wider than its place."""
    if draw.textlength(text, font) <= width:
        return text
    while text and draw.textlength(text + "…", font) > width:
        text = text[:-1]
    return text + "…"


def _size(height: float) -> int:
    """Return the size of the font in rows of some height."""
    return 13 if height >= 20 else 12 if height >= 16 else 10


def _decimals(largest: float) -> int:
    """Return how many decimals to write: at least two, more for small numbers, fewer for those of three digits."""
    digits = math.floor(math.log10(largest)) + 1
    return max(0, 3 - digits) if digits > 1 else min(4, 2 - min(0, digits))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return matplotlib's font, because Pillow's own has neither π nor Â."""
    import matplotlib as mpl

    return ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", size)
