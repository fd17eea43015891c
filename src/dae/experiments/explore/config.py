"""The options of `dae explore`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dae.experiments.config import THREADS
from dae.rules import COUNT, ENOUGH, HORIZON, NATURAL, ruled
from dae.runs.settings import SEED
from dae.terminal.options import COUNT_WORD, optional_words


@dataclass(frozen=True)
class ExploreConfig:
    """Show which decisions of a trained agent mattered: one page to open in a browser, without a server.

    dae explore runs/MinAtar-Breakout-v1/dae-baseline/seed-0
    dae explore runs/Breakout/seed-0 --episodes 20 --what-if 30 --gif
    """

    run: tyro.conf.Positional[Path]
    """Folder of the run, or a folder with one run in it."""
    episodes: int = ruled(5, COUNT)
    """Episodes to play."""
    steps: Annotated[int, COUNT_WORD] = ruled(2_000, COUNT)
    """Steps of an episode that are shown at most."""
    what_if: int = ruled(12, NATURAL)
    """Decisions to try again, by Monte Carlo from the restored state, with every action; 0 for none."""
    rollouts: int = ruled(64, ENOUGH)
    """Rollouts for each action of such a decision."""
    horizon: int = ruled(512, HORIZON)
    """Steps of a rollout at most."""
    greedy: bool = False
    """Take the most probable action instead of drawing one."""
    best: bool = False
    """Take the agent that had the best evaluation (`dae train --eval-every`) instead of the newest."""
    seed: int = ruled(1_000, SEED)
    """Seed of the first episode; the others have those that follow."""
    gif: bool = False
    """Also write the first episode as an annotated GIF."""
    mp4: bool = False
    """Also write it as an MP4."""
    threads: int = ruled(0, THREADS)
    """CPU threads of PyTorch; 0 leaves the choice to PyTorch."""
    out: Annotated[Path | None, optional_words("FOLDER")] = None
    """Folder for page and data; by default `explore` in the run's folder."""
    trust: bool = False
    """Import the module that the run's environment names (mymodule:MyEnv-v0)."""
