"""What a sweep would do, and how long it would take."""

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.experiments.sweep.config import SweepConfig
from dae.experiments.sweep.planned import PlannedRun
from dae.runs import RunSettings, find_runs
from dae.terminal.options import format_count
from dae.text import plural

Kind = tuple[str, str, str, str, str]  # environment, network, advantage, actors, whose PPO


def describe_plan(config: SweepConfig, planned: list[tuple[PlannedRun, bool, int]]) -> str:
    """Return the plan, given for every run whether it is finished, and its frames so far."""
    from dae.experiments.sweep.launchers import LocalProcesses

    known = recorded_speeds(config.out)
    lines, seconds, longest = [], 0.0, 0.0
    kinds: dict[Kind, list[tuple[PlannedRun, bool, int]]] = {}
    for entry in planned:
        kinds.setdefault(_kind(entry[0].config), []).append(entry)
    for kind, entries in kinds.items():
        finished = sum(done for _, done, _ in entries)
        begun = sum(frames > 0 for _, done, frames in entries if not done)
        left = sum(run.config.frames - frames for run, done, frames in entries if not done)
        speed, source = 0.0, "nothing left to do"
        if left:
            speed = known.get(kind) or measured_speed(entries[0][0].config)
            source = f"{speed:,.0f} frames/s " + ("in earlier runs" if kind in known else "measured just now")
            seconds += left / speed
            longest = max(longest, *((run.config.frames - frames) / speed for run, done, frames in entries if not done))
        frames = format_count(entries[0][0].config.frames)
        lines.append(
            f"  {' '.join(kind).strip():52} {plural(len(entries), 'run'):>10} of {frames} frames: "
            f"{finished} finished, {begun} begun; {source}"
        )
    # Ray's cluster is not started for this: what one machine like this one would take.
    slots = min(LocalProcesses(config).slots(), max(1, len(os.sched_getaffinity(0)) // config.cpus_per_run))
    seconds = max(longest, seconds / slots)
    return "\n".join(
        [
            f"{plural(len(planned), 'run')} in {config.out}:",
            *lines,
            f"about {_in_words(seconds)}, {plural(slots, 'run')} at a time on a machine like this; nothing was started",
        ]
    )


def recorded_speeds(root: Path) -> dict[Kind, float]:
    """Return the frames per second of runs in a folder, as they were recorded; the mean of each kind."""
    speeds: dict[Kind, list[float]] = {}
    for folder in find_runs([root]) if root.is_dir() else []:
        speed = folder.read_status().frames_per_second
        if speed > 0:
            with contextlib.suppress(UserError, OSError):  # of a folder that is something else
                speeds.setdefault(_kind(folder.read_config().settings), []).append(speed)
    return {kind: sum(found) / len(found) for kind, found in speeds.items()}


def measured_speed(config: TrainConfig) -> float:
    """Train one small iteration with these settings and return its frames per second."""
    import torch

    from dae.experiments.training.building import make_env, make_model

    small = replace(config, actors=min(config.actors, 8), steps=min(config.steps, 128))
    env = make_env(small)
    torch.set_num_threads(config.threads or 1)
    model = make_model(small, env)
    steps = small.actors * small.steps
    model.learn(2 * steps)  # compiles the games and warms up
    began = time.perf_counter()
    model.learn(2 * steps)
    return 2 * steps * config.family.frames_per_step / (time.perf_counter() - began)


def _in_words(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return plural(round(seconds), "second")


def _kind(settings: RunSettings) -> Kind:
    ours = settings.implementation == "dae"
    return settings.env, settings.network, settings.advantage, plural(settings.actors, "actor"), "" if ours else "sb3"
