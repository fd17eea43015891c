"""Two runs side by side, one thread each, against one run alone with one thread: runs an hour on two cores."""

import subprocess
import sys
import tempfile
import time

ROUNDS = 3
FRAMES = "30K"


def seconds(jobs: int, seeds: int) -> float:
    """Time a sweep of so many runs, of which so many train at a time."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "dae", "sweep", "--envs", "MinAtar/Breakout-v1", "--advantages", "dae"]
        command += ["--seeds", str(seeds), "--jobs", str(jobs), "--out", out]
        start = time.perf_counter()
        settings = ["--settings", "actors=128", f"frames={FRAMES}", "finishing=no"]
        subprocess.run([*command, *settings], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def main() -> None:
    print(f"\nsweeps of MinAtar Breakout, DAE, 128 actors, {FRAMES} frames, whole processes, best of {ROUNDS} rounds")
    alone, together = [], []
    for _ in range(ROUNDS):
        alone.append(seconds(jobs=1, seeds=1))
        together.append(seconds(jobs=2, seeds=2))
    one, two = 3600 / min(alone), 2 * 3600 / min(together)
    print(f"one run at a time {one:.0f} runs an hour, two side by side {two:.0f}: {two / one:.2f} times as many")
