"""A run that is to be trained by somebody: the arguments of its `dae train`, and the settings they give."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from dae.errors import UserError, nearest
from dae.experiments.config import TrainConfig
from dae.runs import RunFolder

# What those who plan runs set by themselves.
_NOT_TO_BE_SET = ("env", "advantage", "network", "preset", "seed", "out", "config", "resume", "threads", "tag", "trust")
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


def require_settings(option: str, texts: Iterable[str]) -> None:
    """Refuse what is not NAME=VALUE with a setting of `dae train`."""
    for text in texts:
        name, sign, _ = text.partition("=")
        name = name.replace("-", "_")
        if not sign or name in _NOT_TO_BE_SET:
            raise UserError(f"{option} has {text!r}: it must be NAME=VALUE, with a NAME that has no option of its own")
        if name not in _SETTINGS:
            hint = nearest(name, _SETTINGS, "dae train --help lists them")
            raise UserError(f"{option} has {text!r}: {name!r} is not a setting{hint}")
