"""The page of the credit explorer: its size, and frames a second while a hand moves through an episode."""

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.browser import Tab, chromium
from tests.explorer.explorations import episode, exploration

from benchmarks.timing import print_header, print_row
from dae.explorer import render

STEPS = 2000
# Every frame the slider moves on by one step, as a hand would move it; the page answers before the next frame.
SCRUB = """new Promise(done => {
  const times = [];
  let step = 0;
  const next = now => {
    times.push(now);
    if (step > %d) return done(times);
    slider.value = step;
    slider.dispatchEvent(new Event("input"));
    step += 1;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
WINDOWS = {"desktop, 1200 px": (1200, 860), "phone, 390 px": (390, 844)}


def main(*, quick: bool = False) -> None:
    steps = 200 if quick else STEPS
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "explore.html"
        page.write_text(render(exploration(episode(steps, borders=(steps // 3,)))), encoding="utf-8")
        size = page.stat().st_size / 1e6
        print(f"\nCredit explorer: {steps:,} steps of MinAtar, {size:.2f} MB (aim: less than 5 MB, 30 frames/s)")
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; software rendering")
        print_header("scrub across all steps", "frames/s", "slowest 1% of frames, ms", "main thread, ms a step")
        for window, (width, height) in WINDOWS.items():
            for origin, words in (("from-start", ""), ("from-here", ", return from each step on")):
                with chromium(Path(place) / "profile") as tab:
                    tab.open(page, width, height, "light")
                    tab.evaluate(f"document.getElementById('{origin}').click()")
                    took, busy = scrub(tab, steps)
                slow = np.quantile(took, 0.99)
                print_row(f"{window}{words}", f"{1000 / took.mean():.0f}", f"{slow:.1f}", f"{1000 * busy / steps:.2f}")


def scrub(tab: Tab, steps: int) -> tuple[NDArray[np.float64], float]:
    """Return the milliseconds from frame to frame, and the seconds that the page's main thread has worked."""
    tab.call("Performance.enable")
    before = _busy_seconds(tab)
    times = tab.evaluate(SCRUB % (steps - 1))
    return np.diff(times), _busy_seconds(tab) - before


def _busy_seconds(tab: Tab) -> float:
    metrics = {metric["name"]: metric["value"] for metric in tab.call("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])
