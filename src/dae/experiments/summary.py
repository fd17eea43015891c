"""What a run ends with: its scores, a picture of how it learned, and an episode to watch."""

import numpy as np

from dae.agent import PPO
from dae.experiments.config import TrainConfig
from dae.experiments.recording import CannotRecord, record_episode
from dae.pictures import COLOURS, draw_band, new_figure, save_figure
from dae.runs import Episodes, RunFolder


def summarize(config: TrainConfig, folder: RunFolder, model: PPO, seconds: float) -> None:
    """Print the scores, and draw and record what there is to see."""
    episodes = folder.read_episodes()
    lines = [f"\n{config.frames:,} frames in {seconds / 60:.1f} minutes, {len(episodes):,} episodes"]
    if len(episodes):
        first = float(episodes.scores[:100].mean())
        lines.append(f"score at the start {first:.2f}, at the end {episodes.last:.2f}, overall {episodes.overall:.2f}")
    else:
        lines.append("no episode has ended: there is no score")
    if config.pictures and len(episodes):
        draw_learning_curve(config, folder, episodes)
        lines.append(f"learning curve   {folder.curve}")
    if config.pictures:
        try:
            record_episode(model, config.env, folder.gif, seed=config.seed)
            lines.append(f"an episode       {folder.gif}")
        except CannotRecord as reason:
            lines.append(f"no recording: {reason}")
    lines.append(f"next: dae play {folder.path}     watch it and measure it over many episodes")
    lines.append(f"      tensorboard --logdir {folder.tensorboard}")
    print("\n".join(lines), flush=True)


def draw_learning_curve(config: TrainConfig, folder: RunFolder, episodes: Episodes) -> None:
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
    draw_band(axes, middle, mean, spread, colour=COLOURS[config.advantage], label=label)
    axes.set_xlabel("frames")
    axes.set_ylabel("score")
    axes.set_title(f"{config.env} · {config.advantage}, {config.network} · seed {config.seed}", fontsize=11)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(0, edges[-1])
    axes.legend(frameon=False, loc="upper left")
    save_figure(figure, folder.curve)
