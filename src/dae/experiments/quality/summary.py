"""What the meter found: a table, two figures, and all numbers."""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dae.experiments.monte_carlo import ActionValues
from dae.experiments.quality.measures import SURE, Measured
from dae.experiments.quality.measuring import NETWORK, OWN, Judged, Measurement
from dae.pictures import look_of, new_figure, plain, save_figure
from dae.text import aligned, decimals_for, plural, short_text, with_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {
    "bias": "bias",
    "mse": "MSE",
    "relative": "relative",
    "relative_under_policy": "under π",
    "rank_correlation": "order",
    "best_action": "best",
    "gradient_cosine": "gradient",
    "centring": "centring",
}
_PANELS = {  # what they show, and between which values
    "relative": ("squared error, all actions\n(always 0: 1)", (0, None)),
    "relative_under_policy": ("squared error, weighted by\nthe policy (always 0: 1)", (0, None)),
    "rank_correlation": ("rank correlation\nof actions", (-1, 1)),
    "best_action": ("share of states whose\nbest action is found", (0, 1)),
    "gradient_cosine": ("cosine between estimated\nand true gradient", (-1, None)),
    "bias": ("bias", (None, None)),
}
_LEGEND = """\
bias         mean of Â − A over states and actions, all with the same weight
MSE          mean of (Â − A)² of single estimates, without the error of the truth
relative     MSE divided by the mean of A²: an estimator that always says 0 has 1
under π      the same, actions weighted by the policy: what it hardly does counts little
order        Kendall's τ in a state, over pairs of actions that the truth tells apart
best         how often the truly best action has the largest estimate
gradient     cosine between the policy gradients with estimated and true advantages
centring     root mean square of Σ_a π(a|s) Â(s, a)"""


def summarize(about: str, found: Measurement, gamma: float, horizon: int) -> str:
    """Return what was measured, the truth in a few numbers, and a line for each critic."""
    truth = found.truth
    states, actions, rollouts = truth.returns.shape
    signal, error = (math.sqrt(max(0.0, square)) for square in _squares(truth))
    pairs = states * actions * (actions - 1) // 2
    rows = [["", *_COLUMNS.values()]]
    rows += [[judged.label, *(_cell(getattr(judged.quality, name)) for name in _COLUMNS)] for judged in found.judged]
    return "\n".join(
        [
            about,
            f"Truth: {plural(states, 'state')} x {plural(actions, 'action')} x {plural(rollouts, 'rollout')} of at "
            f"most {plural(horizon, 'step')} ({truth.lengths.mean():.0f} on average), "
            f"{100 * truth.cut.mean():.0f} % of them cut;",
            _told_of_cuts(truth, gamma),
            f"True advantages: root mean square {signal:.3g}, standard error {error:.2g}. By {SURE:g} standard errors "
            f"the truth tells apart",
            f"{found.sure_pairs:,} of {plural(pairs, 'pair')} of actions, and knows the best action in "
            f"{found.sure_states:,} of {plural(states, 'state')}.",
            "",
            aligned(rows),
            "",
            _LEGEND,
        ]
    )


def _told_of_cuts(truth: ActionValues, gamma: float) -> str:
    if not truth.cut.any():
        return "all rewards that followed are in it."
    shortest = int(truth.lengths[truth.cut].min())
    return f"what is cut off weighs at most γ^{shortest} = {gamma**shortest:.2g}."


def _cell(measured: Measured) -> str:
    if math.isnan(measured.value):
        return "-"
    if abs(measured.value) < 5e-6 and not measured.error > 5e-6:
        return "0"
    if measured.error > 0 and 0.01 <= abs(measured.value) < 1000:
        return with_error(measured.value, measured.error, min(3, decimals_for([measured.error], 2)))
    return short_text(measured.value, measured.error)


def _squares(truth: ActionValues) -> tuple[float, float]:
    """Return the mean squares of the true advantages, without their errors, and of these."""
    of_errors = float((truth.advantages.error**2).mean())
    return float((truth.advantages.mean**2).mean()) - of_errors, of_errors


def to_json(found: Measurement) -> dict[str, Any]:
    """Return all numbers but the samples; what is not known is None."""
    truth = found.truth
    return {
        "states": truth.returns.shape[0],
        "actions": truth.returns.shape[1],
        "rollouts": truth.returns.shape[2],
        "mean_length": float(truth.lengths.mean()),
        "share_cut": float(truth.cut.mean()),
        "mean_squared_advantage": _squares(truth)[0],
        "mean_squared_error_of_truth": _squares(truth)[1],
        "sure_pairs": found.sure_pairs,
        "sure_states": found.sure_states,
        "critics": {
            judged.name: {
                name: {part: None if math.isnan(number) else number for part, number in measured.items()}
                for name, measured in dataclasses.asdict(judged.quality).items()
            }
            for judged in found.judged
        },
    }


def draw_measures(title: str, found: Measurement, *paths: Path) -> None:
    """Draw what the table says, a bar for each critic."""
    figure, panels = new_figure(13.5, 3.2, columns=len(_PANELS))
    places = np.arange(len(found.judged))
    for axes, (name, (told, (low, high))) in zip(panels, _PANELS.items(), strict=True):
        measured = [getattr(judged.quality, name) for judged in found.judged]
        values, errors = (np.array([getattr(m, part) for m in measured]) for part in ("value", "error"))
        bars = axes.bar(places, np.nan_to_num(values), color=[_colour(judged) for judged in found.judged], width=0.7)
        for bar, error in zip(bars, errors, strict=True):
            bar.set_alpha(0.35 if np.isnan(error) else 1.0)  # a number without an error is hardly one
        axes.errorbar(places, values, np.nan_to_num(errors), fmt="none", ecolor="0.25", lw=1, capsize=2)
        axes.set_xticks(places, [plain(judged.label) for judged in found.judged], rotation=40, ha="right", fontsize=8)
        axes.set_title(told, fontsize=9)
        axes.axhline(0, color="0.4", lw=0.8)
        axes.set_ylim(low, high)
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="y", labelsize=8)
    for axes in panels[:2]:
        axes.axhline(1, color="0.4", lw=0.8, ls="--")
    known = f"the truth is sure of {plural(found.sure_pairs, 'pair')} of actions and of the best in {found.sure_states}"
    figure.suptitle(plain(f"{title}; {known}"), fontsize=10, color="0.35")
    save_figure(figure, *paths)


def draw_scatter(title: str, found: Measurement, path: Path) -> None:
    """Draw the estimates of each critic against the truth."""
    columns = min(5, len(found.judged))
    rows = -(-len(found.judged) // columns)
    figure, panels = new_figure(2.6 * columns, 2.7 * rows + 0.4, rows=rows, columns=columns)
    truth = found.truth.advantages
    shown = np.concatenate([truth.mean.ravel(), *(judged.estimates.ravel() for judged in found.judged)])
    low, high = np.quantile(shown, [0.002, 0.998])
    for axes, judged in zip(panels, found.judged, strict=False):
        _draw_cloud(axes, judged, truth.mean, truth.error)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_aspect("equal")
    for axes in panels[len(found.judged) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("estimated advantage", fontsize=8)
    figure.suptitle(plain(title), fontsize=10, color="0.35")
    save_figure(figure, path)


def _draw_cloud(axes: "Axes", judged: Judged, truth: np.ndarray, error: np.ndarray) -> None:
    x = np.broadcast_to(truth[..., None], judged.estimates.shape).ravel()
    axes.errorbar(
        x,
        judged.estimates.ravel(),
        xerr=np.broadcast_to(error[..., None], judged.estimates.shape).ravel(),
        fmt="o",
        ms=2,
        mew=0,
        alpha=0.25,
        elinewidth=0.5,
        color=_colour(judged),
    )
    axes.axline((0, 0), slope=1, color="0.3", lw=0.8)
    axes.set_title(plain(judged.label), fontsize=9)
    axes.set_xlabel("true advantage", fontsize=8)
    axes.tick_params(labelsize=7)


def _colour(judged: Judged) -> str:
    name = judged.name.removesuffix(NETWORK)
    return "0.35" if name == OWN else look_of(name)["colour"]
