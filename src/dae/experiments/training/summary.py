"""What a run ends with: its scores, a picture of how it learned, and an episode to watch."""

import numpy as np

from dae.agent import PPO
from dae.catalog import colour_of
from dae.experiments.film import CannotRecord, record_episode
from dae.pictures import draw_band, new_figure, save_figure
from dae.runs import Episodes, RunFolder, RunSettings
from dae.text import plural


def describe_scores(episodes: Episodes, seconds: float, *, trained: int, played: int) -> str:
    """Say what ran and how long it took, and how well the agent plays: at first, at the end, and all in all.

    The first episodes to end are the shortest, which are often the worst. So "at first" is a part of the frames, not a
    number of episodes.
    """
    more = f" of training and {plural(played, 'frame')} of finishing episodes" if played else ""
    what = f"\n{plural(trained, 'frame')}{more} in {seconds / 60:.1f} minutes, {plural(len(episodes), 'episode')}"
    if not len(episodes):
        return f"{what}\nno episode has ended: there is no score"
    early = episodes.scores[episodes.frames <= trained / 10]
    first = f"{early.mean():.2f}" if len(early) else "none (no episode ended)"
    last = plural(min(100, len(episodes)), "episode")
    return (
        f"{what}\nmean score in the first tenth of the frames {first}, of the last {last} {episodes.last:.2f}, "
        f"of all {episodes.overall:.2f}"
    )


def draw_pictures(settings: RunSettings, folder: RunFolder, model: PPO) -> list[str]:
    """Draw and record what there is to see; return a line for each."""
    lines = []
    episodes = folder.read_episodes()
    if len(episodes):
        draw_learning_curve(settings, folder, episodes)
        lines.append(f"learning curve   {folder.curve}")
    try:
        record_episode(model, settings, folder.film, seed=settings.seed)
        lines.append(f"an episode       {folder.film}")
    except CannotRecord as reason:
        lines.append(f"no recording: {reason}")
    return lines


def next_steps(folder: RunFolder) -> str:
    """Say what to do with a finished run."""
    return (
        f"next: dae play {folder.path}     watch it and measure it over many episodes\n"
        f"      tensorboard --logdir {folder.tensorboard}"
    )


def draw_learning_curve(settings: RunSettings, folder: RunFolder, episodes: Episodes) -> None:
    """Draw the mean score of episodes against the frames played until they ended."""
    from matplotlib.ticker import EngFormatter

    figure, (axes,) = new_figure(6.4, 4.0)
    bins = min(100, max(1, len(episodes) // 10))
    edges = np.linspace(0, episodes.frames.max(), bins + 1)
    place = np.clip(np.digitize(episodes.frames, edges) - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = count > 0
    middle = ((edges[1:] + edges[:-1]) / 2)[filled]
    mean = (np.bincount(place, episodes.scores, bins)[filled]) / count[filled]
    square = np.bincount(place, episodes.scores**2, bins)[filled] / count[filled]
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    label = "mean score of episodes, ± 1 standard deviation"
    draw_band(axes, middle, mean, spread, colour=colour_of(settings.advantage).light, label=label)
    axes.set_xlabel("frames")
    axes.set_ylabel("score")
    axes.set_title(f"{settings.env} · {settings.advantage}, {settings.network} · seed {settings.seed}", fontsize=11)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, edges[-1])
    axes.legend(frameon=False, loc="upper left")
    save_figure(figure, folder.curve)
