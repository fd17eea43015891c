"""The options of `dae play`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dae.rules import COUNT, ruled
from dae.runs.settings import SEED
from dae.terminal.options import optional_words


@dataclass(frozen=True)
class PlayConfig:
    """Measure a trained agent over many episodes, and record one.

    dae play runs/CartPole-v1/dae-baseline/seed-0
    dae play runs/CartPole-v1/dae-baseline/seed-0 --greedy --film mp4
    """

    run: tyro.conf.Positional[Path]
    """Folder of the run, or a folder with one run in it."""
    episodes: int = ruled(100, COUNT)
    """Episodes to play."""
    greedy: bool = False
    """Take the most probable action instead of drawing one."""
    best: bool = False
    """Play with the agent that had the best evaluation (`dae train --eval-every`) instead of the newest."""
    seed: int = ruled(1_000, SEED)
    """Seed of the environments."""
    film: Literal["gif", "mp4", "none"] = "gif"
    """What to record an episode as."""
    out: Annotated[Path | None, optional_words("FOLDER")] = None
    """Folder for the film; by default `play` in the run's folder."""
    trust: bool = False
    """Import the module that the run's environment names (mymodule:MyEnv-v0)."""
