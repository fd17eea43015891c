"""The settings that define a run, and how they are written to files."""

import dataclasses
import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import tyro
from tyro.constructors import PrimitiveConstructorSpec

from dae.catalog import default_settings, describe, estimator_names, require_estimator
from dae.envs import SB3_PRESET, Family, families, family_of, full_id, network_names, plain_id, preset_names
from dae.errors import InvalidValue, UserError, nearest
from dae.hyperparameters import Hyperparameters, as_settings
from dae.rules import COUNT, FRACTION, NATURAL, Rule, check_fields, require, ruled
from dae.terminal.options import COUNT_WORD, KEYWORDS, is_json_object, one_of, optional_words

Settings = TypeVar("Settings", bound="RunSettings")
_SHORT = reprlib.Repr()  # a file's values may be nested too deeply to be shown
_SHORT.maxstring = 80
ENV_ID = Rule("an environment id, such as MinAtar/Breakout-v1", lambda name: bool(name) and name.isprintable())
SEED = Rule("in [0, 2^32)", lambda n: 0 <= n < 2**32)
SIZE = Rule("an integer in [1, 2^53)", lambda n: 1 <= n < 2**53)  # what JSON and floats hold exactly
DEVICE = Rule("auto, cpu, mps, cuda or cuda:N", lambda name: bool(re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name)))

# On the command line, the name of a game is enough.
ENV_WORD: PrimitiveConstructorSpec[str] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="ENV",
    instance_from_str=lambda words: full_id(words[0]),
    is_instance=lambda value: isinstance(value, str),
    str_from_instance=lambda value: [value],
)
JSON_OBJECT = Rule("NAME=VALUE pairs, or a JSON object", is_json_object)

TAG = Rule(
    "at most 100 letters, digits and . _ = , + -, not beginning with a dot",
    lambda tag: bool(re.fullmatch(r"(?!\.)[\w.=,+-]{0,100}", tag, re.ASCII)),
)


@dataclass(frozen=True)
class _Chosen:
    """What is trained, and how much."""

    env: Annotated[str, ENV_WORD, tyro.conf.Positional, optional_words("ENV")] = ruled("", ENV_ID)
    """Environment: MinAtar/Breakout-v1, Pong (ALE/Pong-v5), CartPole-v1, or mymodule:MyEnv-v0 to import first."""
    advantage: Annotated[str, one_of(estimator_names())] = "dae"
    """How advantages are estimated."""
    network: Annotated[str, one_of(network_names())] = "baseline"
    """Size of the network: the paper's baseline, wide, or deep (images of Atari's size)."""
    preset: Annotated[str, one_of(preset_names())] = "paper"
    """What the other options are by default: the paper's settings, a short run, or `dae.PPO`'s defaults."""
    seed: int = ruled(0, SEED)
    """Seed of the network, the actions and the environments."""
    frames: Annotated[int, COUNT_WORD] = ruled(10_000_000, SIZE)
    """Frames of all actors together, such as 500K or 10M; 4 of them pass in a step of an Atari game, elsewhere 1."""
    actors: Annotated[int, COUNT_WORD] = ruled(1024, SIZE)
    """Environments that play side by side."""
    env_kwargs: Annotated[str, KEYWORDS] = ruled("{}", JSON_OBJECT)
    """Arguments of the environment: is_slippery=false map_name=8x8, or one JSON object."""
    normalize_observations: bool = False
    """Scale observations to mean 0 and variance 1 with running statistics (VecNormalize); for vectors of numbers."""
    normalize_rewards: bool = False
    """Scale rewards by the running standard deviation of the return (VecNormalize); scores stay as they are."""


@dataclass(frozen=True)
class _Varied:
    """What the paper or its authors varied besides PPO's settings."""

    separate_networks: bool = False
    """Use separate networks for policy and critic."""
    extra_mlp: bool = False
    """Put 64-64 hidden layers between trunk and heads, as the authors' GAE runs had."""
    atari_trunk: Literal["paper", "code"] = "paper"
    """Channels of the network for images: 32-32-32 as in the paper's figure, or 32-64-64 as in the authors' code."""
    minatar_version: Literal["1.0.15", "1.0.10"] = "1.0.15"
    """Rules of MinAtar: today's, or those of the authors, whose Seaquest gives one step more air."""
    sticky_actions: float = ruled(0.0, FRACTION)
    """Probability with which a game repeats the action before, in place of the agent's; the paper has none."""
    backend: Literal["dae", "sb3"] = "dae"
    """Whose Atari environments play: ours, or Stable-Baselines3's `make_atari_env`, to compare with."""
    implementation: Literal["dae", "sb3"] = "dae"
    """Whose PPO trains: ours, or Stable-Baselines3's own code, to compare with (only GAE)."""
    extended_from: tyro.conf.Suppress[tuple[int, ...]] = ()
    """Frames that the run once had, and after which its learning rate and clip range had fallen to 0."""
    finishing: bool = True
    """After the last update let the policy play until completed episodes hold all frames, as the paper's scores do."""
    device: str = ruled("auto", DEVICE)
    """Where the network runs: auto, cpu, cuda."""


@dataclass(frozen=True)
class _Watched:
    """What is measured on the way; it does not change what is learned."""

    eval_every: Annotated[int, COUNT_WORD] = ruled(0, NATURAL)
    """Evaluate the agent in environments of its own every so many frames, such as 100K, and keep the best; 0: never."""
    eval_episodes: int = ruled(20, COUNT)
    """Episodes of an evaluation."""
    eval_greedy: bool = False
    """Take the most probable actions in evaluations instead of drawing them."""


@dataclass(frozen=True)
class RunSettings(_Watched, _Varied, Hyperparameters, _Chosen):
    """All that decides the numbers of a run. A field that is added later defaults to what runs before it did."""

    @property
    def family(self) -> Family:
        return family_of(self.env)

    @property
    def env_id(self) -> str:
        """The environment without the module that registers it."""
        return plain_id(self.env)

    @property
    def name(self) -> str:
        """The folder of the run within the folder that runs are kept in."""
        return self.named("")

    def named(self, tag: str) -> str:
        """Return the run's folder with a word of the user's, which keeps runs with different settings apart."""
        kind = tagged(f"{self.advantage}-{self.network}", tag)
        return str(Path(self.env_id.replace("/", "-")) / kind / f"seed-{self.seed}")

    @property
    def env_options(self) -> dict[str, Any]:
        """What the environments are made with, besides their id."""
        own = {option: getattr(self, name) for name, option in self.family.env_settings.items()}
        keywords: dict[str, Any] = json.loads(self.env_kwargs)
        return own | keywords

    def require_consistent(self) -> None:
        """Refuse settings that do not go together; those that concern the environment are checked when it is made."""
        require_estimator(self.advantage)
        self.family.preset(self.preset)
        for name in describe(self.advantage).ignores:
            value = getattr(self, name)
            if value != getattr(Hyperparameters, name):
                raise InvalidValue(f"{name} is {value!r}: it has no meaning for advantage {self.advantage!r}")
        for name in {name for family in families() for name in family.env_settings} - set(self.family.env_settings):
            if getattr(self, name) != getattr(RunSettings, name):
                having = " or ".join(family.label for family in families() if name in family.env_settings)
                raise InvalidValue(f"{name} is {getattr(self, name)!r}: {self.env} is not a game of {having}")
        for name, option in self.family.env_settings.items():
            value = getattr(self, name)
            if option in json.loads(self.env_kwargs) and value != getattr(RunSettings, name):
                raise InvalidValue(f"{name} is {value!r}, and env_kwargs has {option} too: use one of them")
        if self.implementation == "sb3" and self.advantage != "gae":
            raise InvalidValue(f"implementation is 'sb3': it has only advantage 'gae', not {self.advantage!r}")
        fitting = self.family.network_names
        rule = f"{' or '.join(fitting)} for {self.env}{nearest(self.network, fitting)}"
        require("network", self.network, Rule(rule, lambda name: name in fitting))

    def to_json(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in SETTING_NAMES}

    @staticmethod
    def from_json(settings: Any, where: Path) -> "RunSettings":
        """Return the settings that a file holds; what is not there has its default."""
        require_names(settings, SETTING_NAMES, where)
        read = convert_settings(settings, RunSettings, where)
        try:
            check_fields(read)
        except InvalidValue as error:
            raise UserError(f"{where}: {error}") from error
        return read


def tagged(name: str, tag: str) -> str:
    """Return a name with a tag, if there is one.

    >>> tagged("dae-baseline", "lr=1e-4"), tagged("dae-baseline", "")
    ('dae-baseline-lr=1e-4', 'dae-baseline')
    """
    return f"{name}-{tag}" if tag else name


def convert_settings(settings: Mapping[str, Any], kind: type[Settings], where: Path, *, lax: bool = False) -> Settings:
    """Return settings as a dataclass with values of the right types; `lax` takes numbers and switches as text too."""
    try:
        return msgspec.convert(settings, kind, strict=not lax, dec_hook=lambda cls, value: cls(value))
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        fields = {field.name: field for field in dataclasses.fields(kind)}
        if name not in fields:
            raise UserError(f"{where}: {error}") from error
        rule = fields[name].metadata.get("rule")
        expected = rule.text if rule else str(error).partition(" - at")[0].removeprefix("Expected ").replace("`", "")
        raise UserError(f"{where}: {name} is {_SHORT.repr(settings[name])}: it must be {expected}") from error


SETTING_NAMES = tuple(field.name for field in dataclasses.fields(RunSettings))
# What does not change the numbers, or stands for other settings.
WITHOUT_EFFECT = frozenset(
    {"seed", "device", "torch_compile", "preset", *(field.name for field in dataclasses.fields(_Watched))}
)


def require_names(settings: Any, known: tuple[str, ...], where: Path) -> None:
    """Refuse names that are not settings."""
    if not isinstance(settings, Mapping):
        raise UserError(f"{where}: its settings are a {type(settings).__name__}, not a table of names and values")
    for name in settings:
        if name not in known:
            raise UserError(f"{where}: {name!r} is not a setting{nearest(name, known)}")


def require_same(
    folder: Path, stored: Mapping[str, Any], given: Mapping[str, Any], *, remedy: str = "another --tag or --out"
) -> None:
    """Refuse to continue with different settings what a folder holds."""
    differing = [
        f"{name} is {stored.get(name)!r} there and {value!r} here"
        for name, value in given.items()
        if stored.get(name) != value
    ]
    if differing:
        raise UserError(
            f"{folder} was made with different settings ({'; '.join(differing)}): use the same, or {remedy}"
        )


def preset_settings(env: str, advantage: str, preset: str) -> dict[str, Any]:
    """Return the settings in which a preset differs from a run's defaults: the estimator's, then the family's."""
    info = describe(advantage)
    family = family_of(env)
    of_estimator = default_settings(info) if preset == SB3_PRESET else as_settings(info.paper)
    if preset in family.presets_with_few_actors:
        of_estimator |= as_settings(info.defaults)
    return of_estimator | dict(family.preset(preset))
