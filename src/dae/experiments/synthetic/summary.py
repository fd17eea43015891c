"""The two panels of the paper's figure, and what they show in words."""

from pathlib import Path

import numpy as np

from dae.catalog import colour_of, describe
from dae.experiments.synthetic.config import SyntheticConfig
from dae.experiments.synthetic.results import Results
from dae.pictures import draw_band, new_figure, save_figure
from dae.text import plural


def draw(config: SyntheticConfig, results: Results, *paths: Path) -> None:
    """Draw the error of the advantages and the expected return against iterations."""
    figure, (left, right) = new_figure(10.0, 3.8, columns=2)
    iterations = np.arange(1, config.iterations + 1)
    for method in config.methods:
        look = {"colour": colour_of(method).light, "label": describe(method).label}
        for axes, curve in zip((left, right), results.curves(method, config.seeds), strict=True):
            draw_band(axes, iterations, curve.mean, curve.error, **look)
    left.set_yscale("log")
    left.set_title("Mean squared error of the advantages", fontsize=11)
    right.axhline(config.states, color="0.5", lw=1, ls="--")
    right.annotate("optimal", (1, config.states), (0, 3), textcoords="offset points", color="0.4", fontsize=8)
    right.set_title("Expected return of the policy", fontsize=11)
    for axes in (left, right):
        axes.set_xlabel("iteration")
        axes.set_xlim(1, max(2, config.iterations))
    left.legend(frameon=False)
    shown = ", mean and one standard error" if config.seeds > 1 else ""
    figure.suptitle(
        f"Chain of {plural(config.states, 'state')}, {plural(config.seeds, 'seed')}{shown}; "
        f"the policy's loss is a {config.policy_loss}",
        fontsize=10,
        color="0.35",
    )
    save_figure(figure, *paths)


def summarize(config: SyntheticConfig, results: Results) -> str:
    """Return one paragraph with the numbers."""
    end = config.iterations
    stations = [i for i in (50, 200, 500) if i < end] + [end]
    told = [
        f"Chain of {plural(config.states, 'state')}, γ {config.gamma:g}, {plural(end, 'iteration')}, "
        f"the policy's loss a {config.policy_loss} over steps, {plural(config.seeds, 'seed')}"
        + (" (mean ± standard error)." if config.seeds > 1 else ".")
    ]
    final = {}
    for method in config.methods:
        mse, expected = results.curves(method, config.seeds)
        errors = ", ".join(f"{mse.at(i)} at iteration {i}" for i in stations)
        told.append(
            f"{describe(method).label}: mean squared error of the advantages {errors}; expected return at the end "
            f"{expected.at(end)} of {config.states}."
        )
        final[method] = expected.mean
    if {"dae", "gae"} <= set(config.methods):
        told.append(_compare(final["dae"], final["gae"]))
    return " ".join(told)


def _compare(dae: np.ndarray, gae: np.ndarray) -> str:
    """Say who is ahead when."""
    lead = gae - dae
    behind = np.flatnonzero(lead >= 0)
    if not np.any(lead):
        return "Their policies are equally good throughout."
    if lead[-1] >= 0:
        return "At the end GAE's policy is ahead of DAE's."
    if not np.any(lead > 0):
        return "DAE's policy is ahead from the first iteration."
    best = int(lead.argmax())
    return (
        f"GAE's policy is ahead until iteration {behind[-1] + 1} (by {lead[best]:.1f} at most, at iteration "
        f"{best + 1}), DAE's from then on."
    )
