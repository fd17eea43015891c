"""Run folders as training leaves them, written in a moment: the report's tests and benchmark read these."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dae.experiments.config import parse

MADE_WITH = {
    "versions": {"dae-rl": "0.1.0", "torch": "2.13.0", "python": "3.11.9"},
    "git_commit": "0123abc",
    "threads": 1,
    "machine": "Linux-test",
    "cpus": 2,
}


def settings_of(env: str, method: str, network: str, seed: int, **changed: Any) -> dict[str, Any]:
    """Return the settings of a run with the paper's preset, but for what is changed."""
    words = [env, "--advantage", method, "--network", network, "--seed", str(seed)]
    for name, value in changed.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return parse(words).to_json()


def write_run(
    root: Path,
    env: str = "MinAtar/Breakout-v1",
    method: str = "dae",
    network: str = "baseline",
    seed: int = 0,
    episodes: Sequence[tuple[float, int]] = ((1.0, 100), (3.0, 900)),  # score, frames
    state: str = "finished",
    made_with: dict[str, Any] = MADE_WITH,
    **changed: Any,
) -> Path:
    """Write the folder of a run with these episodes."""
    folder = root / env.replace("/", "-") / f"{method}-{network}" / f"seed-{seed}"
    settings = settings_of(env, method, network, seed, **({"frames": 1000} | changed))
    rows = "".join(f"{score!r},10,{i}.500,{frames}\n" for i, (score, frames) in enumerate(episodes))
    return write_files(folder, settings, rows, len(episodes), state, made_with)


def write_files(
    folder: Path, settings: dict[str, Any], rows: str, episodes: int, state: str, made_with: dict[str, Any] = MADE_WITH
) -> Path:
    folder.mkdir(parents=True)
    config = {"schema": 1, "settings": settings, "made_with": made_with}
    (folder / "config.json").write_text(json.dumps(config))
    status = {"state": state, "frames": settings["frames"], "total_frames": settings["frames"], "episodes": episodes}
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "monitor.csv").write_text(f'#{{"t_start": 0.0, "env_id": "x"}}\nr,l,t,frames\n{rows}')
    return folder
