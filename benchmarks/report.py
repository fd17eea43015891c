"""`dae report` on the runs of a whole study: time and memory of the command, from the folders to the page."""

import dataclasses
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tests.report.folders import write_files

from dae.experiments.config import parse

GAMES = {  # frames of an episode at the start and at the end, score of a start and an end
    "Asterix": (90, 1200, 0.4, 30.0),
    "Breakout": (60, 2200, 0.5, 200.0),
    "Freeway": (2500, 2500, 0.3, 48.0),
    "Seaquest": (80, 700, 0.2, 30.0),
    "SpaceInvaders": (120, 2500, 3.0, 500.0),
}
CELLS = [("gae", "baseline"), ("dae", "baseline"), ("gae", "wide"), ("dae", "wide"), ("duel", "baseline")]
CELLS += [("indirect", "baseline")]
SKILL = {"gae": 1.0, "dae": 1.6, "duel": 1.1, "indirect": 0.9}
SEEDS = 100
DIFFERENT = 4  # files of a cell; the others repeat their rows


def episode_rows(game: str, skill: float, frames: int, rng: np.random.Generator) -> tuple[str, int]:
    """Return the lines of a run that learns, and how many there are."""
    begin, end, low, high = GAMES[game]
    lengths, played = [], 0.0
    while played < frames:
        mean = begin + (end - begin) * (played / frames) ** 2
        lengths.append(mean)
        played += mean
    ended = np.cumsum(lengths).astype(np.int64)
    progress = ended / frames
    mean = low + (high * skill - low) * progress**1.5
    scores = rng.poisson(np.maximum(mean * rng.lognormal(0, 0.3), 0)).astype(float)
    rows = zip(scores.tolist(), np.array(lengths, int).tolist(), (ended / 3000).tolist(), ended.tolist(), strict=True)
    return "".join(f"{s!r},{n},{t:.3f},{f}\n" for s, n, t, f in rows), len(lengths)


def write_study(root: Path, seeds: int, *, frames: int = 10_000_000) -> int:
    """Write finished runs of all games, and return the size of their episode files in bytes."""
    rng, size = np.random.default_rng(0), 0
    for game in GAMES:
        for method, network in CELLS:
            skill = SKILL[method] * (1.3 if network == "wide" else 1.0)
            drawn = [episode_rows(game, skill, frames, rng) for _ in range(min(DIFFERENT, seeds))]
            env = f"MinAtar/{game}-v1"
            words = [env, "--advantage", method, "--network", network, "--frames", str(frames)]
            config = parse(words)
            for seed in range(seeds):
                rows, count = drawn[seed % len(drawn)]
                seeded = dataclasses.replace(config, seed=seed, out=root)
                write_files(seeded.folder, seeded.to_json(), rows, count, "finished")
                size += len(rows)
    return size


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        runs = len(GAMES) * len(CELLS) * SEEDS
        size = write_study(Path(place) / "runs", SEEDS)
        print(f"\ndae report on {runs:,} runs of 10M frames, {size / 1e9:.2f} GB of episodes (aim: 2 minutes, 2 GB)")
        command = [Path(sys.executable).with_name("dae"), "report", f"{place}/runs", "--out", f"{place}/report"]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
        # Of the largest process; the readers are as many as there are cores.
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        page = (Path(place) / "report" / "index.html").stat().st_size / 1e6
        print(f"{seconds:.1f} s, {memory:.2f} GB in the largest process; the page has {page:.1f} MB")
