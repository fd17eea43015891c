"""`dae quality`: measure agents, one after the other, and write what was found."""

import contextlib
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch

from dae.catalog import describe
from dae.envs import require_trust
from dae.errors import UserError
from dae.experiments.arrays import write_arrays
from dae.experiments.loading import Run, hash_weights, load_run
from dae.experiments.monte_carlo import require_enumerable
from dae.experiments.provenance import made_with
from dae.experiments.quality.config import QualityConfig
from dae.experiments.quality.measuring import Measurement, measure_quality
from dae.experiments.quality.summary import draw_measures, draw_scatter, summarize, to_json
from dae.files import read_file, write_atomically
from dae.runs import find_runs
from dae.runs.settings import require_same
from dae.serialization import BadData, parse_json
from dae.terminal.progress import WorkProgress
from dae.terminal.signals import Stopped, StopSignals
from dae.text import plural

_UNITS = {"learning": "updates", "playing": "steps", "rollouts": "rollouts", "probing": "rollouts"}
_MOST_ENVS = 256  # of which critics learn in one go: with more, they would look at new rollouts less often
_LARGEST = 2**24  # bytes of quality.json


def run(config: QualityConfig) -> int:
    """Measure all agents; those that cannot be measured are refused before the first one is."""
    if config.threads:
        torch.set_num_threads(config.threads)
    found = find_runs(list(config.runs))
    if not found:
        raise UserError(f"there is no run in {', '.join(map(str, config.runs))}: name the folder of one")
    runs = [load_run(folder.path, best=config.best, trust=config.trust) for folder in found]
    root = Path(os.path.commonpath([folder.path.absolute() for folder in found]))
    folders = [_prepare(each, config, root) for each in runs]
    with StopSignals():
        try:
            for each, folder in zip(runs, folders, strict=True):
                _measure(each, config, folder)
        except Stopped as stopped:
            print(f"stopped by {stopped}; runs that were measured are kept", flush=True)
            return stopped.exit_code
    return 0


def _prepare(run: Run, config: QualityConfig, root: Path) -> Path:
    """Refuse an agent that cannot be measured, or a folder with other results; return where the results go."""
    settings, where = run.config, run.folder.path
    require_trust(settings.env, where, trust=config.trust)
    if settings.normalize_rewards:
        raise UserError(f"{where} was trained with normalised rewards, whose scale changed all the time: no truth fits")
    require_enumerable(run.model)
    if not settings.family.can_be_restored(settings.env_id, **settings.env_options):
        raise UserError(f"{settings.env} cannot be restored exactly, so that there is no truth to compare with")
    if config.out is None:
        run.folder.require_plain()
    folder = config.out / where.absolute().relative_to(root) if config.out else where / "quality"
    stored = _read(folder / "quality.json")
    if stored is not None:
        require_same(folder, stored, _settings(run, config), remedy="another --out")
    return folder


def _settings(run: Run, config: QualityConfig) -> dict[str, Any]:
    agent = hashlib.sha256()
    hash_weights(run.model, agent)
    about = {"env": run.config.env, "trained_steps": run.model.num_timesteps, "weights": agent.hexdigest()}
    return config.to_json() | about


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        settings = parse_json(read_file(path, _LARGEST), dict[str, Any])["settings"]
    except (BadData, KeyError, OSError):
        raise UserError(f"{path} is not what dae quality writes: choose another --out") from None
    return dict(settings)


def _measure(run: Run, config: QualityConfig, folder: Path) -> None:
    model, family = run.model, run.config.family
    run.announce_if_training()
    print(f"measuring {run.folder.path} ...", flush=True)
    env = run.make_env(min(family.simulated_at_once, _MOST_ENVS), config.seed)
    with contextlib.closing(env), _Phases() as watch:
        measured = measure_quality(
            model,
            env,
            estimators=config.estimators or None,
            states=config.states,
            rollouts=config.rollouts,
            horizon=config.horizon,
            steps=config.steps,
            probes=config.probes,
            seed=config.seed,
            watch=watch,
        )
    trained = plural(model.num_timesteps * family.frames_per_step, "frame")
    about = f"{run.config.env}, {describe(model.advantage).label}, {trained} of training"
    _write(folder, about, measured, run, config)


def _write(folder: Path, about: str, measured: Measurement, run: Run, config: QualityConfig) -> None:
    told = summarize(about, measured, run.model.gamma, config.horizon)
    content = {"settings": _settings(run, config), "made_with": dataclasses.asdict(made_with()), **to_json(measured)}
    write_atomically(folder / "summary.txt", told.encode() + b"\n")
    samples = {
        "returns": measured.truth.returns.astype(np.float32),
        "probabilities": measured.truth.probabilities.astype(np.float32),
        **{f"estimates_{judged.name}": judged.estimates.astype(np.float32) for judged in measured.judged},
    }
    write_arrays(folder / "quality.npz", samples)
    draw_measures(about, measured, *(folder / f"quality.{kind}" for kind in ("png", "svg", "pdf")))
    draw_scatter(about, measured, folder / "scatter.png")
    write_atomically(folder / "quality.json", json.dumps(content, indent=1).encode() + b"\n")
    print(
        f"{told}\n\nresults in {folder}: summary.txt, quality.json, quality.npz, quality.png, scatter.png", flush=True
    )


class _Phases:
    """The progress of a measurement, one phase after the other."""

    def __enter__(self) -> Self:
        self._shown = contextlib.ExitStack()
        self._phase = ""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._shown.__exit__(kind, error, at)

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self._shown.close()
            self._progress = self._shown.enter_context(WorkProgress(total, 0, _UNITS[phase]))
            self._phase = phase
        self._progress.reach(done, phase, "")
