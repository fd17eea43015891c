"""Explorations with known numbers, as the playing side would fill them."""

from typing import Any

import numpy as np

from dae.explorer import Episode, Exploration, Grid, Segment, Truth

NAMES = ["noop", "left", "up", "right", "down", "fire"]
PALETTE = ["#101418", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442"]


def episode(
    steps: int = 60, *, seed: int = 0, borders: tuple[int, ...] = (), cut: bool = False, actions: int = 6
) -> Episode:
    """Draw an episode: segments end at the borders and at its last step, where it may be cut."""
    rng = np.random.default_rng(seed)
    spread = rng.gamma(0.5, 0.2, (steps, 1))
    advantages = (rng.normal(0, 1, (steps, actions)) * spread).astype(np.float32)
    logits = rng.normal(0, 1, (steps, actions)) + 3 * advantages
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = np.array([rng.choice(actions, p=row) for row in probabilities])
    advantages -= (probabilities * advantages).sum(axis=1, keepdims=True).astype(np.float32)
    rewards = (rng.random(steps) < 0.08).astype(np.float64) - (rng.random(steps) < 0.01)
    values = (2 + np.cumsum(rng.normal(0, 0.08, steps))).astype(np.float32)
    ends = [*borders, steps]
    return Episode(
        seed=seed,
        score=float(rewards.sum()),
        ended=not cut,
        actions=chosen,
        rewards=rewards,
        scores=rewards.cumsum(),
        values=values,
        probabilities=probabilities.astype(np.float32),
        advantages=advantages,
        segments=[
            Segment(start, end, terminated=not (cut and end == steps), bootstrap=1.5 if cut and end == steps else 0.0)
            for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ],
        picture=grid(steps, rng),
    )


def grid(steps: int, rng: np.random.Generator) -> Grid:
    """Ten by ten cells with some things that move, and one more picture for the end."""
    cells = np.zeros((steps + 1, 10, 10), np.uint8)
    for thing in range(1, len(PALETTE)):
        for _ in range(3):
            place = (rng.integers(10) + np.cumsum(rng.integers(-1, 2, steps + 1))) % 10
            cells[np.arange(steps + 1), rng.integers(10), place] = thing
    return Grid(PALETTE, cells)


def truth(played: Episode, step: int, *, wrong: tuple[int, ...] = (), error: float = 0.05) -> Truth:
    """Simulated advantages within two standard errors of Â, but for some actions."""
    actions = played.probabilities.shape[1]
    estimate = np.zeros(actions) if played.advantages is None else played.advantages[step].astype(np.float64)
    off = np.where(np.isin(np.arange(actions), wrong), 5.0, 1.0) * error
    value = float(played.values[step]) + 0.1
    errors = np.full(actions, error)
    return Truth(step, estimate + off + value, errors, estimate + off, errors, value, 0.02, rollouts=64, horizon=500)


def exploration(*episodes: Episode, **changes: Any) -> Exploration:
    settings: dict[str, Any] = {
        "env": "MinAtar/Breakout-v1",
        "run": "runs/MinAtar-Breakout-v1/dae/0",
        "advantage": "dae",
        "label": "DAE",
        "source": "network",
        "gamma": 0.99,
        "frames": 10_000_000,
        "greedy": False,
        "action_names": NAMES,
        "command": "dae explore runs/MinAtar-Breakout-v1/dae/0",
        "version": "0.9",
        "episodes": list(episodes),
    }
    return Exploration(**settings | changes)
