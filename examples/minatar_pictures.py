"""Draw the five games of MinAtar, with their names and what each colour stands for: python examples/minatar_pictures.py

The colours and their names come from the games themselves. This is the picture in docs/minatar.md.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import dae

GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
SCALE = 2  # pixels of the file for each on the page, so that letters are sharp
GAME, GAP, TOP, LINE = 240, 16, 34, 21  # sizes on the page


def play(game: str, steps: int = 70) -> tuple[np.ndarray, dict[str, tuple[int, int, int]]]:
    """Take random steps; return the last picture, and the colour of each kind of object."""
    env = dae.make_vec_env(f"MinAtar/{game}-v1", n_envs=1, seed=4, render_mode="rgb_array")
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(rng.integers(env.action_space.n, size=1))
    return env.render(), env.get_attr("colours")[0]


def key_of(colours: dict[str, tuple[int, int, int]]) -> dict[tuple[int, int, int], str]:
    """Return the names of the objects by colour; those with the same colour share a line."""
    key: dict[tuple[int, int, int], str] = {}
    for name, colour in colours.items():
        words = name.replace("_", " ")
        key[colour] = f"{key[colour]}, {words}" if colour in key else words
    return key


def draw(path: Path) -> None:
    """Write a picture of all games side by side, each with its name above and its colours below."""
    played = [play(game) for game in GAMES]
    lines = max(len(key_of(colours)) for _, colours in played)
    size = (len(GAMES) * (GAME + GAP) - GAP, TOP + GAME + 12 + lines * LINE)
    sheet = Image.new("RGB", (size[0] * SCALE, size[1] * SCALE), "white")
    pen = ImageDraw.Draw(sheet)
    large, small = ImageFont.load_default(19 * SCALE), ImageFont.load_default(14 * SCALE)
    for place, (game, (picture, colours)) in enumerate(zip(GAMES, played, strict=True)):
        left = place * (GAME + GAP)
        pen.text((left * SCALE, 4 * SCALE), game.replace("SpaceI", "Space I"), "#1d2327", large)
        shown = Image.fromarray(picture).resize((GAME * SCALE, GAME * SCALE), Image.Resampling.NEAREST)
        sheet.paste(shown, (left * SCALE, TOP * SCALE))
        for line, (colour, name) in enumerate(key_of(colours).items()):
            y = TOP + GAME + 12 + line * LINE
            square = tuple(n * SCALE for n in (left, y + 1, left + 14, y + 15))
            pen.rectangle(square, fill=colour, outline="#5c6670")
            pen.text(((left + 22) * SCALE, (y - 1) * SCALE), name, "#1d2327", small)
    sheet.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "minatar.png"))
