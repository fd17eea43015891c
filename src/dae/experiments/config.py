"""The settings of `dae train`: those of a run, and where and how often its files are written."""

import contextlib
import dataclasses
import importlib.util
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from dae.envs import import_module_of, require_trust
from dae.errors import UserError, one_line
from dae.files import read_file
from dae.rules import NOT_NEGATIVE, Rule, ruled
from dae.runs import RunFolder, RunSettings
from dae.runs.settings import TAG, convert_settings, preset_settings, require_names
from dae.serialization import BadData, parse_json
from dae.terminal.options import optional_words, parse_count, parse_switch, read_options, read_or_help

THREADS = Rule("in [0, 1024]", lambda n: 0 <= n <= 1024)


@dataclass(frozen=True)
class TrainConfig(RunSettings):
    """Train an agent. Run the same command again to continue a run that was stopped.

        dae train MinAtar/Breakout-v1 --preset quick
        dae train Pong --network wide
        dae train CartPole-v1 --advantage gae --frames 100K --seed 1
        dae train --resume runs/CartPole-v1/gae-baseline/seed-1

    After ENV, --preset, --config or --resume, --help shows the values that they give to the options.
    """

    threads: int = ruled(0, THREADS)
    """CPU threads of PyTorch, and processes of Atari's emulators; 0 leaves the choice to PyTorch."""
    checkpoint_seconds: float = ruled(60.0, NOT_NEGATIVE)
    """Seconds between checkpoints."""
    track: Literal["tensorboard", "wandb", "none"] = "tensorboard"
    """Where losses, scores and speed are logged: as events in the run's folder, also to Weights & Biases, nowhere."""
    pictures: bool = True
    """Draw the learning curve and record an episode at the end."""
    tag: Annotated[str, optional_words("TAG")] = ruled("", TAG)
    """A word for the name of the run's folder, to keep runs with different settings apart: lr=1e-4."""
    out: Path = field(default_factory=lambda: Path("runs"))
    """Folder that runs are kept in."""
    config: Annotated[Path | None, optional_words("FILE")] = None
    """TOML file (or a run's config.json) with any of these settings; options override it."""
    resume: Annotated[Path | None, optional_words("FOLDER")] = None
    """Continue the run in this folder with its own settings."""
    trust: bool = False
    """Allow --resume and --config to name a module of yours to import (mymodule:MyEnv-v0)."""

    @property
    def name(self) -> str:
        return self.named(self.tag)

    @property
    def folder(self) -> Path:
        return self.resume or self.out / self.name

    def require_consistent(self) -> None:
        super().require_consistent()
        if self.track == "wandb" and importlib.util.find_spec("wandb") is None:
            raise UserError("track is 'wandb', which is not installed: pip install 'dae-rl[track]', or use tensorboard")


_NAMES = tuple(f.name for f in dataclasses.fields(TrainConfig) if f.name not in ("config", "resume", "trust"))
_COMMAND = "dae train"
_LARGEST = 2**20  # bytes of a file of settings
_SWITCHES = tuple(f.name for f in dataclasses.fields(TrainConfig) if f.type is bool)
_COUNTS = ("frames", "actors", "eval_every")  # which a file may hold as text: "500K"


def parse(arguments: list[str]) -> TrainConfig:
    """Read the options of `dae train`; what is not given comes from the config file, then from the preset."""
    return read_or_help(TrainConfig, _COMMAND, arguments, _resolve)


def _resolve(words: list[str]) -> TrainConfig:
    first = _read(words, TrainConfig())
    if first.resume is not None:
        stored = RunFolder(first.resume).read_config().settings
        _import_env(stored.env, first, first.resume)
        return _read(words, TrainConfig(**stored.to_json()))
    in_file = _read_file(first.config) if first.config is not None else {}
    _import_env(first.env or in_file.get("env", ""), first, first.config)
    chosen = _read(words, TrainConfig(**in_file))
    return _read(words, from_preset(chosen.env, chosen.advantage, chosen.preset, in_file))


def _import_env(env: str, given: TrainConfig, file: Path | None) -> None:
    """Import the module that an environment's id names: it may register a family, and with it presets."""
    if env != given.env:
        require_trust(env, file, trust=given.trust)
    import_module_of(env)


def from_preset(env: str, advantage: str, preset: str, settings: Mapping[str, Any]) -> TrainConfig:
    """Return the settings of a preset, with some of them replaced."""
    named = {"env": env, "advantage": advantage, "preset": preset}
    return TrainConfig(**preset_settings(env, advantage, preset) | dict(settings) | named)


def _read(arguments: list[str], default: TrainConfig) -> TrainConfig:
    return read_options(TrainConfig, _COMMAND, arguments, default)


def _read_file(path: Path) -> dict[str, Any]:
    """Return the settings in a file, converted to their types; TOML has no None, so it is written as text."""
    try:
        content = read_file(path, _LARGEST, follow=True)
        settings: Any = parse_json(content, object) if path.suffix == ".json" else _parse_toml(content)
    except OSError as error:
        raise UserError(f"config file {path} cannot be read: {error.strerror}") from error
    except BadData as error:
        raise UserError(f"config file {path} cannot be read: {error}") from error
    if path.suffix == ".json":
        settings = settings.get("settings") if isinstance(settings, dict) else None
    require_names(settings, _NAMES, path)
    plain = {name: _plain(name, value, path) for name, value in settings.items()}
    typed = convert_settings(plain, TrainConfig, path, lax=True)
    return {name: getattr(typed, name) for name in settings}


def _parse_toml(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:  # not TOML, not text, or numbers that are too long
        raise BadData(one_line(error)) from error
    except RecursionError:
        raise BadData("it is nested too deeply") from None


def _plain(name: str, value: Any, path: Path) -> Any:
    """Return a value as JSON would have it: counts may be 500K, whole numbers 1e4, switches yes, arguments a table."""
    if isinstance(value, dict) and name == "env_kwargs":
        return json.dumps(value, sort_keys=True)
    if value == "None":
        return None
    if isinstance(value, str) and name in _SWITCHES:
        with contextlib.suppress(ValueError):  # what is neither is refused with the rule of the setting
            return parse_switch(value)
    if isinstance(value, str) and name in _COUNTS:
        try:
            return parse_count(value)
        except ValueError as error:
            raise UserError(f"{path}: {name}: {error}") from error
    return int(value) if isinstance(value, float) and value.is_integer() else value
