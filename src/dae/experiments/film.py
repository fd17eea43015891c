"""An episode as a film: what the agent saw beside what it thought of each action."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.envs import make_vec_env
from dae.errors import UserError, one_line
from dae.files import replacing
from dae.runs import RunSettings

_HEIGHT, _PANEL = 300, 260
_BACKGROUND, _INK, _FAINT = (24, 24, 30), (235, 235, 240), (120, 120, 132)
_GOOD, _BAD = (88, 178, 120), (222, 106, 94)


class CannotRecord(UserError):
    """Why there is no film of this environment."""


@dataclass(frozen=True)
class _Thought:
    """The agent's estimates at one step: one bar per action."""

    value: float
    bars: NDArray[np.float32]
    of: str  # what the bars show
    action: int | None  # None: the actions are not single numbers


def record_episode(
    model: PPO, settings: RunSettings, path: Path, *, seed: int, greedy: bool = False, longest: int = 600, fps: int = 12
) -> float:
    """Play one episode, or its first `longest` steps, and write it as a GIF or MP4; return its score."""
    family = settings.family
    env = _make_visible(settings, seed)
    names = family.action_names(env)
    observations = env.reset()
    read_masks = model.mask_reader(env)
    moments, score = [], 0.0
    for _ in range(longest):
        masks = read_masks()
        action, _ = model.predict(observations, deterministic=greedy, action_masks=masks)  # type: ignore[arg-type]
        thought = _think(model, observations, masks, int(action[0]) if names else None)
        moments.append((family.draw(env), score, thought))
        observations, rewards, dones, _ = env.step(action)
        score += float(rewards[0])
        if dones[0]:
            break
    env.close()
    # One scale for the whole film, so that a long bar is a moment that matters.
    largest = max((float(np.abs(thought.bars).max(initial=0)) for _, _, thought in moments), default=0) or 1.0
    frames = [_compose(picture, score, thought, names, largest) for picture, score, thought in moments]
    path.parent.mkdir(parents=True, exist_ok=True)
    write = _write_mp4 if path.suffix == ".mp4" else _write_gif
    with replacing(path) as temporary:
        write(temporary, frames, fps)
    return score


def _make_visible(settings: RunSettings, seed: int) -> VecEnv:
    try:
        env = make_vec_env(settings.env, 1, seed, render_mode="rgb_array", **settings.env_options)
        env.reset()
        settings.family.draw(env)
    except UserError as error:
        raise CannotRecord(f"{settings.env} cannot be drawn here: {one_line(error)}") from error
    env.seed(seed)
    return env


def _think(model: PPO, observations: Any, masks: NDArray[np.bool_] | None, action: int | None) -> _Thought:
    if action is not None and model.estimator.info.models_all_actions:
        credit = model.advantages(observations, masks)
        return _Thought(float(credit.values[0]), credit.advantages[0], "advantage", action)
    with torch.no_grad():
        tensors = model.policy.obs_to_tensor(observations)[0]
        value = float(model.policy.predict_values(tensors))
        distribution = model.policy.get_distribution(tensors).distribution
    bars = np.zeros(0, np.float32)
    if action is not None:
        bars = distribution.probs[0].cpu().numpy()  # type: ignore[union-attr]
    return _Thought(value, bars, "probability", action)


def _compose(
    picture: NDArray[np.uint8], score: float, thought: _Thought, names: list[str], largest: float
) -> Image.Image:
    """Put the picture beside a panel with score, value and one bar per action."""
    image = Image.fromarray(picture)
    width = round(image.width * _HEIGHT / image.height)
    image = image.resize((width, _HEIGHT), Image.Resampling.NEAREST)
    canvas = Image.new("RGB", (width + _PANEL, _HEIGHT), _BACKGROUND)
    canvas.paste(image, (0, 0))
    draw = ImageDraw.Draw(canvas)
    font, small = ImageFont.load_default(17), ImageFont.load_default(13)
    left = width + 16
    draw.text((left, 14), f"score {score:g}", _INK, font)
    draw.text((left, 38), f"value {thought.value:.2f}", _FAINT, font)
    if len(thought.bars):
        draw.text((left, 72), f"{thought.of} of each action", _FAINT, small)
        _draw_bars(draw, left, 96, thought, names, largest, small)
    return canvas


def _draw_bars(
    draw: ImageDraw.ImageDraw,
    left: int,
    top: int,
    thought: _Thought,
    names: list[str],
    largest: float,
    font: Any,
) -> None:
    middle, half = left + 118, 52
    room = (_HEIGHT - top - 10) / len(thought.bars)
    height = min(24.0, room)
    for i, bar in enumerate(thought.bars):
        y = top + i * height
        chosen = i == thought.action
        if chosen:
            draw.rectangle((left - 8, y, left + _PANEL - 24, y + height - 3), fill=(44, 44, 54))
        draw.text((left, y + 1), names[i], _INK if chosen else _FAINT, font)
        end = middle + half * float(bar) / largest
        low, high = sorted((float(middle), end))
        draw.rectangle((low, y + 4, high, y + height - 7), fill=_GOOD if bar >= 0 else _BAD)
        draw.text((middle + half + 8, y + 1), f"{bar:+.2f}", _INK if chosen else _FAINT, font)
    draw.line((middle, top, middle, top + height * len(thought.bars) - 4), fill=_FAINT)


def _write_gif(path: Path, frames: list[Image.Image], fps: int) -> None:
    # One palette for all frames, taken from several of them, so that colours do not flicker.
    sheet = Image.new("RGB", (frames[0].width, frames[0].height * 4))
    for k in range(4):
        sheet.paste(frames[k * (len(frames) - 1) // 3], (0, k * frames[0].height))
    palette = sheet.quantize(64, dither=Image.Dither.NONE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(path, save_all=True, append_images=small[1:], duration=round(1000 / fps), loop=0)


def _write_mp4(path: Path, frames: list[Image.Image], fps: int) -> None:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise CannotRecord(
            "MP4 needs the package imageio-ffmpeg: pip install imageio-ffmpeg, or write a GIF"
        ) from error
    size = (frames[0].width // 2 * 2, frames[0].height // 2 * 2)
    writer = imageio_ffmpeg.write_frames(str(path), size, fps=fps, macro_block_size=2)
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(np.asarray(frame.crop((0, 0, *size)))))
    writer.close()
