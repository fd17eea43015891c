"""What a run ends with: its scores, a picture of how it learned, and an episode to watch."""

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from dae.agent import PPO
from dae.catalog import describe
from dae.envs import trust_option
from dae.experiments.config import TrainConfig
from dae.experiments.film import CannotRecord, record_episode
from dae.pictures import count_axis, draw_between, legend_below, look_of, new_figure, plain, save_figure, score_axis
from dae.runs import Episodes, RunFolder, RunSettings
from dae.runs.episodes import bin_of
from dae.text import plural

Numbers = NDArray[np.float64]


def describe_scores(episodes: Episodes, seconds: float, *, budget: int, trained: int, played: int) -> str:
    """Say what ran and how long it took, and how well the agent plays: at first, at the end, and all in all.

    The first episodes to end are the shortest, which are often the worst. So "at first" is a part of the frames, not a
    number of episodes.
    """
    whole = f" ({budget:,}, rounded up to whole iterations)" if trained > budget else ""
    more = f" of training and {plural(played, 'frame')} of finishing episodes" if played else ""
    time = f"{seconds / 60:.1f} minutes" if seconds >= 120 else plural(round(seconds), "second")
    what = f"\n{plural(trained, 'frame')}{whole}{more} in {time}, {plural(len(episodes), 'episode')}"
    if not len(episodes):
        return f"{what}\nno episode has ended: there is no score"
    early = episodes.scores[episodes.frames <= trained / 10]
    first = f"{early.mean():.2f}" if len(early) else "none (no episode ended)"
    last = plural(min(100, len(episodes)), "episode")
    return (
        f"{what}\nmean score in the first tenth of the frames {first}, of the last {last} {episodes.last:.2f}, "
        f"of all {episodes.overall:.2f}"
    )


def draw_pictures(settings: TrainConfig, folder: RunFolder, model: PPO, statistics: bytes | None) -> list[str]:
    """Draw and record what there is to see and is not there yet; return a line for each.

    `statistics` are those of environments that are normalised.
    """
    lines = []
    episodes = folder.read_episodes()
    if len(episodes) and not folder.curve.exists():
        draw_learning_curve(settings, folder, episodes)
        lines.append(f"learning curve   {folder.curve}")
    if folder.film.exists():
        return lines
    try:
        film = record_episode(model, settings, folder.film, seed=settings.seed, statistics=statistics)
        lines.append(f"an episode       {film.path} ({film})")
    except CannotRecord as reason:
        lines.append(f"no recording: {reason}")
    return lines


def next_steps(settings: RunSettings, folder: RunFolder, model: PPO) -> str:
    """Say what to do with a finished run."""
    trust = trust_option(settings.env)
    told = [f"next: dae play {folder.path}{trust}     watch it and measure it over many episodes"]
    if isinstance(model.action_space, spaces.Discrete):
        told.append(f"      dae explore {folder.path}{trust}     see which decisions mattered")
    if folder.tensorboard.exists():
        told.append(f"      tensorboard --logdir {folder.tensorboard}")
    return "\n".join(told)


def draw_learning_curve(settings: TrainConfig, folder: RunFolder, episodes: Episodes) -> None:
    """Draw the mean score of episodes, and the range of most of them, against the frames played until they ended."""
    figure, (axes,) = new_figure(6.4, 4.0)
    most = max(settings.frames, int(episodes.frames[-1]))  # the finishing phase goes on after the budget
    middles, means, low, high = score_ranges(episodes, most)
    look = look_of(settings.advantage)
    draw_between(axes, middles, means, low, high, colour=look["colour"], label="mean score of episodes")
    axes.fill_between([], [], [], color=look["colour"], alpha=0.2, lw=0, label="middle 80 % of the episodes")
    evaluations = folder.read_evaluations()
    if len(evaluations):
        axes.errorbar(
            evaluations.frames,
            evaluations.scores,
            np.nan_to_num(evaluations.errors),
            color="black",
            lw=1.0,
            marker="o",
            ms=3,
            capsize=2,
            label="evaluations, ± standard error",
            clip_on=False,
        )
    label, seed = describe(settings.advantage).label, f"seed {settings.seed}"
    axes.set_title(
        plain(" · ".join(filter(None, (settings.env, f"{label}, {settings.network}", settings.tag, seed)))),
        fontsize=11,
    )
    count_axis(axes, most, fontsize=9)
    score_axis(axes, fontsize=9)
    legend_below(figure, axes, fontsize=9)
    save_figure(figure, folder.curve)


def score_ranges(episodes: Episodes, frames: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return the middle of each part of a run, and the mean, the tenth and the ninetieth percentile of its scores.

    A run has at most 50 parts, with 20 episodes each on average; those without an episode are left out.
    """
    bins = min(50, max(1, len(episodes) // 20))
    place = bin_of(episodes.frames, bins, frames)
    parts = np.split(episodes.scores, np.flatnonzero(np.diff(place)) + 1)  # episodes are in the order of their frames
    middles = (np.unique(place) + 0.5) * frames / bins
    low, high = np.array([np.quantile(part, [0.1, 0.9]) for part in parts]).T
    return middles, episodes.mean_scores(bins, frames)[np.unique(place)], low, high
