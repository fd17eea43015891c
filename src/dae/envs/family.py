"""Families of environments: each is one object that knows all that is special about its ids.

`make_vec_env`, training, films, sweeps and reports ask the family of an id; a new family is a subclass of `Family` in a
folder of its own, and its line in `dae.envs` (or a call of `register_family`, in a program of your own). Reports ask
too, so a family's module imports Stable-Baselines3 and compiled code only inside its methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dae.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import Space
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs


@dataclass(frozen=True)
class Protocol:
    """How much the paper ran in a family."""

    games: tuple[str, ...]  # ids
    frames: int
    seeds: int


@dataclass(frozen=True)
class Network:
    """A policy of Stable-Baselines3, by name, and its arguments; `extractor` names a class of `dae.agent.networks`."""

    policy: str
    extractor: str | None = None
    extractor_options: Mapping[str, Any] = field(default_factory=dict)
    net_arch: tuple[int, ...] | None = None  # None: the policy's own


class Family(ABC):
    """One kind of environments."""

    name: str  # in files and tables of data
    label: str  # in headings
    prefix: str  # of its ids: "MinAtar/"
    presets: Mapping[str, Mapping[str, Any]]  # settings of a run that each preset changes
    protocol: Protocol | None = None  # None: the paper has no numbers
    frames_per_step: int = 1  # frames of the game that pass in a step of the agent
    network_names: tuple[str, ...] = ("baseline", "wide")

    def preset(self, name: str) -> Mapping[str, Any]:
        """Return what a preset means here."""
        if name not in self.presets:
            raise InvalidValue(f"preset is {name!r}: for {self.label} it must be one of {', '.join(self.presets)}")
        return self.presets[name]

    def paper_name(self, env_id: str) -> str | None:
        """Return what the paper calls an environment, None if it is not there."""
        inside = self.protocol is not None and env_id in self.protocol.games
        return env_id.removeprefix(self.prefix).rpartition("-v")[0] if inside else None

    @abstractmethod
    def require_known(self, env_id: str) -> None:
        """Refuse an id that does not exist, with those that are spelled most like it."""

    @abstractmethod
    def make(self, env_id: str, n_envs: int, seed: int, **options: Any) -> "VecEnv":
        """Make environments that step together; with `render_mode="rgb_array"` they can be drawn."""

    @abstractmethod
    def can_be_restored(self, env_id: str) -> bool:
        """Say whether a snapshot brings environments back exactly."""

    @abstractmethod
    def take_snapshot(self, env: "VecEnv", observations: "VecEnvObs") -> bytes:
        """Return the state of all environments, as bytes that hold data only; they last showed `observations`."""

    @abstractmethod
    def restore_snapshot(self, env: "VecEnv", snapshot: bytes) -> "VecEnvObs":
        """Bring environments to the state of a snapshot, and return what they show there."""

    @abstractmethod
    def action_names(self, env: "VecEnv") -> list[str]:
        """Return what discrete actions are called."""

    @abstractmethod
    def draw(self, env: "VecEnv") -> "NDArray[np.uint8]":
        """Return a picture of the first environment, (height, width, 3)."""

    @abstractmethod
    def network(self, name: str, observation_space: "Space[Any]", atari_trunk: str) -> Network:
        """Return the network of a size for these observations."""

    def require_network(self, name: str, env_id: str) -> None:
        """Refuse a network that does not fit."""
        if name not in self.network_names:
            raise InvalidValue(f"network is {name!r}: for {env_id} it must be {' or '.join(self.network_names)}")


_FAMILIES: list[Family] = []


def register_family(family: Family) -> Family:
    """Make a family known. Of those whose prefix fits an id the longest prefix counts."""
    if any(known.name == family.name for known in _FAMILIES):
        raise InvalidValue(f"there is a family named {family.name!r} already")
    _FAMILIES.append(family)
    _FAMILIES.sort(key=lambda known: not known.prefix)  # the one that takes every id is shown last
    return family


def family_of(env_id: str) -> Family:
    """Return the family that an id belongs to."""
    return max((f for f in _FAMILIES if env_id.startswith(f.prefix)), key=lambda family: len(family.prefix))


def families() -> list[Family]:
    """Return all families, in the order in which reports show them."""
    return list(_FAMILIES)


def preset_names() -> list[str]:
    """Return the presets that any family has."""
    return list(dict.fromkeys(name for family in _FAMILIES for name in family.presets))


def network_names() -> list[str]:
    """Return the networks that fit any family, in the order in which reports show them."""
    return list(dict.fromkeys(name for family in _FAMILIES for name in family.network_names))
