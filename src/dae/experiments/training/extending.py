"""Extending a run: the same settings with more frames. docs/training.md#extending has what that means for schedules."""

import dataclasses
from pathlib import Path

from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.files import replace_atomically
from dae.runs import RunFolder, State
from dae.runs.settings import require_same
from dae.terminal.boundary import announce


def as_extended(config: TrainConfig, folder: RunFolder) -> TrainConfig:
    """Return the settings with what the run in a folder has behind it: earlier ends, where rates had fallen to 0."""
    earlier: tuple[int, ...] = ()
    if folder.exists:
        stored = folder.read_config().settings
        longer = config.frames > stored.frames and config.anneal
        earlier = (*stored.extended_from, stored.frames) if longer else stored.extended_from
    return dataclasses.replace(config, extended_from=earlier)


def is_longer(config: TrainConfig, folder: RunFolder) -> bool:
    """Say whether the settings have more frames than the run in a folder."""
    return config.frames > folder.read_config().settings.frames


def require_same_but_longer(folder: RunFolder, config: TrainConfig) -> None:
    """Refuse settings that differ from those of the run in a folder in anything but more frames."""
    stored = folder.read_config().settings.to_json()
    if is_longer(config, folder):
        folder.require_whole()
        stored |= {"frames": config.frames, "extended_from": config.extended_from}
    require_same(folder.path, stored, config.to_json())


def _of_shorter(path: Path, frames: int) -> Path:
    return path.with_stem(f"{path.stem}-{frames}")


def extend(folder: RunFolder, config: TrainConfig) -> None:
    """Give the run in a folder more frames; scores and pictures of the shorter run are kept under other names."""
    stored, made_with = folder.read_config()
    status = folder.read_status()
    if config.anneal and status.state is not State.FINISHED:
        raise UserError(
            f"{folder.path} has not finished its {stored.frames:,} frames, over which its learning rate falls to 0: "
            f"let it finish them (--frames {stored.frames}), then extend it"
        )
    if status.state is State.FINISHED:
        replace_atomically(_of_shorter(folder.monitor, stored.frames), folder.monitor.read_bytes())
        for picture in (folder.curve, folder.film):
            if picture.exists():
                picture.replace(_of_shorter(picture, stored.frames))
    # In this order: whenever it is interrupted, the run is either the shorter one or the longer one, and can go on.
    folder.write_status(dataclasses.replace(status, state=State.STOPPED, total_frames=config.frames))
    folder.write_config(config, made_with)
    share = 1 - stored.frames / config.frames
    again = f"; learning rate and clip range go on at {share:.0%} of their start and fall to 0 again"
    announce(
        f"{folder.path} is extended from {stored.frames:,} to {config.frames:,} frames{again if config.anneal else ''}"
    )
