"""The settings of a training run: every field is an option of `dae train`, and presets say what they are by default."""

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tyro

from dae.experiments.options import read_options
from dae.runs import RunFolder, RunProblem

Advantage = Literal["dae", "gae", "duel", "indirect"]
Network = Literal["baseline", "wide", "deep"]
Preset = Literal["paper", "quick"]


def parse_count(text: str) -> int:
    """Read a whole number such as 500000, 500K, 10M or 1.5e6."""
    units = {"K": 1e3, "M": 1e6, "B": 1e9}
    unit = units.get(text[-1:].upper(), 1.0)
    try:
        number = float(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"{text!r} is no whole number, such as 12345, 500K or 10M")
    return int(number)


def format_count(number: int) -> str:
    """Write a whole number so that `parse_count` reads it: 10M, 500K, 12345."""
    for unit, size in (("M", 10**6), ("K", 10**3)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="COUNT",
        instance_from_str=lambda words: parse_count(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [format_count(value)],
    ),
]


@dataclass(frozen=True)
class TrainConfig:
    """Train an agent. Run the same command again to continue a run that was stopped."""

    env: tyro.conf.Positional[str] = ""
    """Environment: MinAtar/Breakout-v1, CartPole-v1 or any other gymnasium id with discrete actions."""
    advantage: Advantage = "dae"
    """How advantages are estimated."""
    network: Network = "baseline"
    """Size of the network: the paper's baseline, wide, or deep (images of Atari's size)."""
    preset: Preset = "paper"
    """What the other options are by default: the paper's settings, or a run of minutes."""
    seed: int = 0
    """Seed of the network, the actions and the environments."""
    frames: Count = 10_000_000
    """Frames of all actors together, such as 500K or 10M."""
    actors: Count = 1024
    """Environments that play side by side."""
    steps: int = 128
    """Steps of each actor between two updates."""
    batch_size: int = 256
    """Frames in a minibatch."""
    epochs: int = 6
    """Passes over the frames of an update."""
    learning_rate: float = 2.5e-4
    """Step size of Adam."""
    clip_range: float = 0.1
    """How far PPO lets the policy move in an update."""
    anneal: bool = True
    """Let learning rate and clip range fall linearly to 0 over the run."""
    gamma: float = 0.99
    """Discount factor."""
    gae_lambda: float = 0.95
    """GAE's λ."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus."""
    critic_coef: float = 1.5
    """Weight of the critic's loss."""
    max_grad_norm: float | None = None
    """Longest gradient; None does not clip."""
    normalize: bool = True
    """Bring advantages to scale 1 in each minibatch."""
    kl_coef: float | None = None
    """Penalise KL(μ‖π) with this weight in place of clipping."""
    separate_networks: bool = False
    """Give policy and critic a network each."""
    extra_mlp: bool = False
    """Put 64-64 hidden layers between trunk and heads, as the authors' GAE runs had."""
    atari_trunk: Literal["paper", "code"] = "paper"
    """Channels of the Atari network: 32-32-32 as in the paper's figure, or 32-64-64 as in the authors' code."""
    bootstrap_truncations: bool = True
    """Let the value of the last state stand for what would follow a time limit; the authors take 0."""
    finishing: bool = True
    """After the last update let the policy play until completed episodes hold all frames, as the paper's scores do."""
    device: str = "auto"
    """Where the network runs: auto, cpu, cuda."""
    threads: int = 0
    """CPU threads of PyTorch; 0 leaves the choice to it."""
    torch_compile: bool = False
    """Compile the network's part of the update."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints."""
    pictures: bool = True
    """Draw the learning curve and record an episode at the end."""
    out: Path = field(default_factory=lambda: Path("runs"))
    """Folder that runs are kept in."""
    config: Path | None = None
    """TOML file (or a run's config.json) with any of these settings; options win over it."""
    resume: Path | None = None
    """Continue the run in this folder, with its own settings."""

    @property
    def domain(self) -> str:
        return {"MinAtar": "minatar", "ALE": "atari"}.get(self.env.split("/")[0], "other")

    @property
    def folder(self) -> Path:
        return self.out / self.env.replace("/", "-") / f"{self.advantage}-{self.network}" / f"seed-{self.seed}"

    def checked(self) -> Self:
        """Refuse what no run can have; what concerns PPO and the environment is checked where they are made."""
        for name, rule, holds in (
            ("env", "an environment id, such as MinAtar/Breakout-v1", bool(self.env)),
            ("frames", "at least 1", self.frames >= 1),
            ("actors", "at least 1", self.actors >= 1),
            ("seed", "in [0, 2^32)", 0 <= self.seed < 2**32),
            ("threads", "at least 0", self.threads >= 0),
            ("learning_rate", "positive and finite", 0 < self.learning_rate < math.inf),
            ("clip_range", "positive and finite", 0 < self.clip_range < math.inf),
            ("checkpoint_seconds", "at least 0", self.checkpoint_seconds >= 0),
        ):
            if not holds:
                raise RunProblem(f"{name} is {getattr(self, name)!r}: it must be {rule}")
        if self.network == "deep" and self.domain != "atari":
            raise RunProblem(f"network 'deep' is for Atari's pictures, not for {self.env}; choose baseline or wide")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the settings that make a run what it is: all but where and how often files are written."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in _NOT_PART_OF_A_RUN}


_NOT_PART_OF_A_RUN = ("out", "config", "resume", "checkpoint_seconds", "pictures", "threads")

_GAE = {"epochs": 4, "critic_coef": 0.5, "max_grad_norm": 0.5}
_DOMAINS: dict[tuple[str, Preset], dict[str, Any]] = {
    ("minatar", "paper"): {},
    ("minatar", "quick"): {"actors": 128, "frames": 500_000},
    ("atari", "paper"): {"frames": 40_000_000},
    ("atari", "quick"): {"actors": 8, "frames": 1_000_000},
    ("other", "paper"): {"actors": 32, "frames": 1_000_000},
    ("other", "quick"): {
        "actors": 32,
        "frames": 200_000,
        "batch_size": 512,
        "learning_rate": 2e-3,
        "clip_range": 0.2,
        "gamma": 0.98,
        "ent_coef": 0.0,
    },
}


def parse(arguments: list[str]) -> TrainConfig:
    """Read the options of `dae train`; what is not given comes from the config file, then from the preset."""
    without_help = [word for word in arguments if word not in ("-h", "--help")]
    first = _parse(without_help, TrainConfig())
    if first.resume is not None:
        return _parse_resumed(first.resume, arguments)
    in_file = _read_file(first.config) if first.config is not None else {}
    words = _as_words(in_file)
    first = _parse([*words, *without_help], TrainConfig(env=in_file.get("env", "")))
    preset = _DOMAINS[first.domain, first.preset] | {"finishing": first.preset == "paper"}
    if first.advantage == "gae":
        preset = preset | _GAE
    return _parse([*words, *arguments], dataclasses.replace(TrainConfig(env=first.env), **preset)).checked()


def parse_settings(settings: dict[str, Any], where: Path, arguments: Sequence[str] = ()) -> TrainConfig:
    """Build the settings that a file holds, with options in their place where there are any."""
    require_fields(settings, where)
    return _parse([*_as_words(settings), *arguments], TrainConfig(env=settings.get("env", "")))


def _parse_resumed(folder: Path, arguments: list[str]) -> TrainConfig:
    """Take all settings from a run's folder; only what is no part of a run may be given beside it."""
    settings = RunFolder(folder).read_config()["settings"]
    chosen = parse_settings(settings, folder / "config.json", arguments)
    require_same(folder, settings, chosen.to_json())
    return chosen


def require_same(folder: Path, stored: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse to continue a run with other settings than it has."""
    differing = [
        f"{name} is {stored.get(name)!r} there and {value!r} here"
        for name, value in given.items()
        if stored.get(name) != value
    ]
    if differing:
        raise RunProblem(
            f"{folder} holds a run with other settings ({'; '.join(differing)}): give the same, or another --out"
        )


def require_fields(settings: dict[str, Any], where: Path) -> None:
    """Refuse names that are no settings."""
    known = {f.name for f in dataclasses.fields(TrainConfig)} - {"config", "resume"}
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise RunProblem(f"{where}: {name!r} is no setting" + (f"; did you mean {near[0]}?" if near else ""))


def _parse(arguments: list[str], default: TrainConfig) -> TrainConfig:
    return read_options(TrainConfig, "dae train", arguments, default)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
        settings = json.loads(text)["settings"] if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise RunProblem(f"config file {path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunProblem(f"config file {path} cannot be read: {error}") from error
    require_fields(settings, path)
    assert isinstance(settings, dict)
    return settings


def _as_words(settings: dict[str, Any]) -> list[str]:
    """Write settings as the options that they are on the command line."""
    named = {name: value for name, value in settings.items() if name != "env"}
    return [word for name, value in named.items() for word in (f"--{name.replace('_', '-')}", str(value))]
