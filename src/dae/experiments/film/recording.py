"""From an agent to a file: play an episode, draw it, write it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.errors import UserError, one_line
from dae.experiments.film.episode import play_episode
from dae.experiments.film.panel import Frames
from dae.experiments.film.writing import FPS, CannotRecord, write_film
from dae.experiments.normalization import make_playing_env
from dae.experiments.scoring import own_randomness
from dae.files import replacing
from dae.runs import RunSettings
from dae.text import ordinal, plural, short_number

MOST_STEPS = 10_000  # some tens of seconds to play: an agent may keep the ball of Breakout in play for ever
MOST_FRAMES = 500  # some 40 seconds to watch, and less than 2 MB of a MinAtar game


@dataclass(frozen=True)
class Film:
    """What was recorded."""

    path: Path
    steps: int
    score: float
    stride: int  # one step in so many is shown
    ended: bool

    def __str__(self) -> str:
        """Say what the film shows, and how fast."""
        first, so_far = ("", "") if self.ended else ("the first ", " so far")
        shown = "all" if self.stride == 1 else f"every {ordinal(self.stride)}"
        return (
            f"{first}{plural(self.steps, 'step')}, score {short_number(self.score)}{so_far}; "
            f"the film shows {shown}, {self.stride * FPS} steps per second"
        )


def record_episode(
    model: PPO,
    settings: RunSettings,
    path: Path,
    *,
    seed: int,
    greedy: bool = False,
    longest: int = MOST_STEPS,
    statistics: bytes | None = None,
) -> Film:
    """Play one episode, or the first `longest` steps of one that does not end, and write it as a GIF or MP4.

    A long episode is shown in part: every second, fourth, … step, so that the film stays short and small. `statistics`
    are those of a run whose observations are normalised.
    """
    env = make_visible(settings, seed, statistics)
    try:
        with own_randomness(seed, model.device):  # the same film whenever it is recorded
            episode = play_episode(
                model, settings.family, env, greedy=greedy, longest=longest, most_moments=MOST_FRAMES
            )
    finally:
        env.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        write_film(temporary, Frames(episode))
    return Film(path, episode.steps, episode.score, episode.stride, episode.ended)


def make_visible(settings: RunSettings, seed: int, statistics: bytes | None) -> VecEnv:
    """Make an environment that can be drawn, with a seed for its next reset."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        # Without a screen SDL, with which gymnasium draws, looks for one, and complains on the terminal.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        env = make_playing_env(settings, 1, seed, statistics, render_mode="rgb_array")
        env.reset()
        settings.family.draw(env)
    except UserError as error:
        raise CannotRecord(f"{settings.env} cannot be drawn here: {one_line(error)}") from error
    env.seed(seed)
    return env
