"""The two panels of the paper's figure, and what they show in words."""

from pathlib import Path

import numpy as np

from dae.catalog import describe
from dae.experiments.synthetic.config import SyntheticConfig
from dae.experiments.synthetic.results import Results
from dae.pictures import count_axis, draw_band, legend_below, look_of, new_figure, save_figure
from dae.text import aligned, plural


def draw(config: SyntheticConfig, results: Results, *paths: Path) -> None:
    """Draw the error of the advantages and the expected return against iterations."""
    figure, (left, right) = new_figure(10.0, 3.8, columns=2)
    iterations = np.arange(1, config.iterations + 1)
    for method in config.methods:
        for axes, curve in zip((left, right), results.curves(method, config.seeds), strict=True):
            draw_band(axes, iterations, curve.mean, curve.error, **look_of(method))
    left.set_yscale("log")
    left.set_title("Mean squared error of the advantages", fontsize=11)
    right.axhline(config.states, color="0.5", lw=1, ls="--")
    right.annotate("optimal", (1, config.states), (0, 3), textcoords="offset points", color="0.4", fontsize=8)
    right.set_title("Expected return of the policy", fontsize=11)
    for axes in (left, right):
        count_axis(axes, config.iterations, "iteration", fontsize=9)
    legend_below(figure, left, columns=len(config.methods), fontsize=9)
    shown = ", mean and one standard error" if config.seeds > 1 else ""
    figure.suptitle(
        f"Chain of {plural(config.states, 'state')}, {plural(config.seeds, 'seed')}{shown}; "
        f"the policy's loss is a {config.policy_loss}",
        fontsize=10,
        color="0.35",
    )
    save_figure(figure, *paths)


def summarize(config: SyntheticConfig, results: Results) -> str:
    """Return the numbers as two tables of at most 80 columns, and who is ahead in words."""
    end = config.iterations
    stations = [i for i in (50, 200, 500) if i < end] + [end]
    head = ["iteration", *(f"{i:,}" for i in stations)]
    shown = ", mean ± standard error" if config.seeds > 1 else ""
    errors, returns = [head], [head]
    for method in config.methods:
        label = describe(method).label
        mse, expected = results.curves(method, config.seeds)
        errors.append([label, *(mse.at(i) for i in stations)])
        returns.append([label, *(expected.at(i) for i in stations)])
    told = [
        f"Chain of {plural(config.states, 'state')}, γ {config.gamma:g}, {plural(end, 'iteration')}, "
        f"{plural(config.seeds, 'seed')}{shown};\n"
        f"the policy's loss is a {config.policy_loss} over steps.",
        f"Mean squared error of the advantages\n{aligned(errors)}",
        f"Expected return of the policy (best: {config.states})\n{aligned(returns)}",
    ]
    if {"dae", "gae"} <= set(config.methods):
        dae, gae = (results.curves(method, config.seeds)[1].mean for method in ("dae", "gae"))
        told.append(_compare(dae, gae))
    return "\n\n".join(told)


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
        f"{best + 1}),\nDAE's from then on."
    )
