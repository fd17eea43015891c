"""A run that is to be trained by somebody: the arguments of its `dae train`, and the settings they give."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dae.envs import family_of
from dae.errors import UserError, nearest
from dae.experiments.config import TrainConfig, parse
from dae.rules import check_fields
from dae.runs import RunFolder
from dae.terminal.options import option_name

# What those who plan runs set by themselves.
_NOT_TO_BE_SET = ("env", "advantage", "network", "preset", "seed", "out", "config", "resume", "threads", "trust")
_SETTINGS = tuple(field.name for field in dataclasses.fields(TrainConfig) if field.name not in _NOT_TO_BE_SET)


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep or a search."""

    words: tuple[str, ...]
    config: TrainConfig

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.config.folder)


def plan(
    env: str, seed: int, settings: Mapping[str, object], known: dict[tuple[object, ...], TrainConfig] | None = None
) -> PlannedRun:
    """Return a run with these settings of `dae train`; what cannot be a run is refused.

    Presets look only at the family of an environment, and reading the words of thousands would take long: `known`
    remembers what words have given.
    """
    words = [f"{option_name(name)}={value}" for name, value in settings.items()]
    known = {} if known is None else known
    kind = family_of(env).name, *words
    if kind not in known:
        known[kind] = parse([env, *words])
    run = PlannedRun((env, *words, f"--seed={seed}"), dataclasses.replace(known[kind], env=env, seed=seed))
    check_fields(run.config)
    run.config.require_consistent()
    return run


def read_settings(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the values of NAME=VALUE texts; what is not a setting of `dae train` is refused."""
    settings = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.replace("-", "_")
        if not sign:
            raise UserError(f"{option} has {text!r}: it must be NAME=VALUE, such as frames=500K")
        if name in _NOT_TO_BE_SET:
            raise UserError(f"{option} has {text!r}: {name} has an option of its own, or is set for each run")
        if name not in _SETTINGS:
            hint = nearest(name, _SETTINGS, "dae train --help lists them")
            raise UserError(f"{option} has {text!r}: {name!r} is not a setting{hint}")
        settings[name] = value
    return settings
