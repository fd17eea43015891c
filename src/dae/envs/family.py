"""Families of environments: each is one object that knows all that is special about its ids.

`make_vec_env`, training, films, sweeps and reports ask the family of an id. `Family` itself is that of every id that no
other claims; a new family is a subclass in a folder of its own, and its line in `dae.envs` (or a call of
`register_family`, in a program of your own). Reports ask too, so a family's module imports Stable-Baselines3 and
compiled code only inside its methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator

from dae.envs.ids import plain_id
from dae.envs.separate import make_separate
from dae.errors import InvalidValue, UserError, nearest, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs


SB3_PRESET = "sb3"  # the preset that starts from `dae.PPO`'s defaults, not from the paper's settings


@dataclass(frozen=True)
class Protocol:
    """How much the paper ran in a family."""

    games: tuple[str, ...]  # ids
    frames: int  # of the game: `frames_per_step` in each step
    seeds: int


@dataclass(frozen=True)
class Network:
    """A policy of Stable-Baselines3, by name, and its arguments; `extractor` names a class of `dae.agent.networks`."""

    policy: str
    extractor: str | None = None
    extractor_options: Mapping[str, Any] = field(default_factory=dict)
    net_arch: tuple[int, ...] | None = None  # None: the policy's own


class Family:
    """One kind of environments: here any that gymnasium makes and Stable-Baselines3 steps."""

    name = "other"  # in files and tables of data
    label = "Other environments"  # in headings
    prefix = ""  # of its ids: "MinAtar/"
    protocol: Protocol | None = None  # None: the paper has no numbers
    frames_per_step = 1  # frames of the game that pass in a step of the agent
    bytes_per_env = 4_000  # of memory, at least
    cell_size = 1  # width in pixels of the square cells, of one colour each, that its pictures consist of
    simulated_at_once = 32  # environments that play Monte-Carlo rollouts side by side
    network_names: tuple[str, ...] = ("baseline", "wide")
    env_settings: Mapping[str, str] = {}  # settings of a run that its environments take, and their names there
    # The settings of a run that each preset changes. The paper has only games: elsewhere a size for one machine.
    presets: Mapping[str, Mapping[str, Any]] = {
        "paper": {"actors": 32, "frames": 1_000_000},
        "quick": {
            "actors": 32,
            "frames": 200_000,
            "finishing": False,
            "batch_size": 512,
            "learning_rate": 2e-3,
            "clip_range": 0.2,
            "gamma": 0.98,
            "ent_coef": 0.0,
        },
        SB3_PRESET: {"actors": 1, "frames": 100_000, "finishing": False},
    }

    # Presets with few actors: the paper's settings and, on top, what estimators have by default in `dae.PPO` (DAE a
    # correction).
    presets_with_few_actors: frozenset[str] = frozenset()

    @property
    def games(self) -> dict[str, str]:
        """What the paper's games are called, by id."""
        ids = self.protocol.games if self.protocol else ()
        return {env_id: env_id.removeprefix(self.prefix).rpartition("-v")[0] for env_id in ids}

    def ids_named(self, name: str) -> list[str]:
        """Return the ids of games with this name, which may lack version and family."""

        def plain(text: str) -> str:
            return text.casefold().replace("_", "")

        of_game = {env_id: (plain(game), plain(self.prefix + game)) for env_id, game in self.games.items()}
        return [env_id for env_id, names in of_game.items() if plain(name) in names]

    def preset(self, name: str) -> Mapping[str, Any]:
        """Return what a preset means here."""
        if name not in self.presets:
            known = f"{', '.join(self.presets)}{nearest(name, self.presets)}"
            raise InvalidValue(
                f"preset is {name!r}: {f'for {self.label} ' if self.prefix else ''}it must be one of {known}"
            )
        return self.presets[name]

    def paper_name(self, env_id: str) -> str | None:
        """Return the paper's name of an environment, or None if it is not in the paper."""
        return self.games.get(env_id)

    def require_known(self, env_id: str) -> None:
        """Refuse an id that does not exist, and suggest the most similar ones."""
        try:
            gym.spec(env_id)
        except gym.error.Error as error:
            if env_id in gym.registry:
                raise InvalidValue(one_line(error)) from error
            hint = nearest(env_id, _suggestions(), "gymnasium.pprint_registry() lists those installed", most=3)
            raise InvalidValue(f"environment {env_id!r} is not known{hint}") from error
        made_by = gym.spec(env_id).entry_point
        try:
            if isinstance(made_by, str):
                load_env_creator(made_by)
        except Exception as error:  # a package that the environment needs is missing
            raise UserError(f"{env_id} cannot be made: {type(error).__name__}: {one_line(error)}") from error

    def make(self, env_id: str, n_envs: int, seed: int | None, **options: Any) -> "VecEnv":
        """Make environments that step together; with `render_mode="rgb_array"` they can be drawn.

        As with a Monitor, the info has `episode` where an episode ends that counts as a score: "r", "l" (in steps of
        the agent) and "t". Where a reward for learning is not that of the score, `raw_reward` is.
        """
        self.require_known(env_id)
        return make_separate(partial(gym.make, env_id, **options), env_id, n_envs, seed)

    def make_separately(
        self, env_id: str, n_envs: int, seed: int | None, wrapping: Mapping[str, Any], **options: Any
    ) -> "VecEnv":
        """Make environments that are objects of their own, with arguments of Stable-Baselines3's `make_vec_env`.

        The id may name a module, because other processes have to import it as well.
        """
        return make_separate(partial(gym.make, env_id, **options), env_id, n_envs, seed, **wrapping)

    def can_be_restored(self, env_id: str, **options: Any) -> bool:
        """Return whether a snapshot restores environments exactly."""
        from dae.envs.snapshots import play_on_alike

        return play_on_alike(self.make(env_id, 1, seed=0, **options), self.make(env_id, 1, seed=1, **options))

    def take_snapshot(self, env: "VecEnv", observations: "VecEnvObs") -> bytes:
        """Return the state of all environments, as bytes that hold data only; they last showed `observations`."""
        from dae.envs.snapshots import take_snapshot

        return take_snapshot(env, observations)

    def restore_snapshot(self, env: "VecEnv", snapshot: bytes) -> "VecEnvObs":
        """Restore environments from a snapshot, and return the observations in it."""
        from dae.envs.snapshots import restore_snapshot

        return restore_snapshot(env, snapshot)

    def action_names(self, env: "VecEnv") -> list[str]:
        """Return what actions are called that are single numbers; nothing if they are not."""
        actions = env.action_space.n if isinstance(env.action_space, spaces.Discrete) else 0
        return [str(action) for action in range(actions)]

    def draw(self, env: "VecEnv") -> "NDArray[np.uint8]":
        """Return a picture of the first environment, (height, width, 3)."""
        try:
            pictures = env.get_images()
        except Exception as error:  # the environment's own: it cannot render, or a package is missing
            raise UserError(f"rendering fails: {type(error).__name__}: {one_line(error)}") from error
        if not len(pictures) or pictures[0] is None:
            raise UserError("it renders nothing")
        return np.asarray(pictures[0], np.uint8)

    def draw_last(self, env: "VecEnv", observation: Any) -> "NDArray[np.uint8] | None":
        """Return a picture of the state in which an episode ended, after which the environment began the next one.

        None if it cannot be drawn from what the environment showed last.
        """
        return None

    def network(self, name: str, observation_space: "spaces.Space[Any]", atari_trunk: str) -> Network:
        """Return the network of a size for these observations."""
        if isinstance(observation_space, spaces.Dict):
            if name != "baseline":
                raise InvalidValue(f"network is {name!r}: for dictionary observations it must be baseline")
            return Network("MultiInputPolicy")
        wide = name == "wide"
        if len(observation_space.shape or ()) != 3:
            return Network("MlpPolicy", net_arch=(256, 256) if wide else (64, 64))
        options = {"width": 2 if wide else 1, "channels": atari_trunk}
        return Network("CnnPolicy", "AtariCNN", options, net_arch=())


_FAMILIES: list[Family] = []


def full_id(name: str) -> str:
    """Return the id of a game that is named without version or family; other names as they are.

    >>> full_id("Pong"), full_id("minatar/space_invaders"), full_id("CartPole-v1")
    ('ALE/Pong-v5', 'MinAtar/SpaceInvaders-v1', 'CartPole-v1')
    """
    named = [env_id for family in _FAMILIES for env_id in family.ids_named(name)]
    if len(named) > 1:
        raise InvalidValue(f"environment {name!r} is the name of several games: choose {' or '.join(named)}")
    return named[0] if named else name


def _suggestions() -> list[str]:
    """Return what environments are called: ids, and names of the paper's games, with the family if several have one."""
    games = [(family.prefix, name) for family in _FAMILIES for name in family.games.values()]
    names = [name for _, name in games]
    return [*(name if names.count(name) == 1 else prefix + name for prefix, name in games), *gym.registry]


def register_family(family: Family) -> None:
    """Register a family; reports show families in this order, the one that accepts every id last."""
    if any(known.name == family.name for known in _FAMILIES):
        raise InvalidValue(f"a family named {family.name!r} is already registered")
    _FAMILIES.append(family)
    _FAMILIES.sort(key=lambda known: not known.prefix)


def families() -> list[Family]:
    """Return all families, in the order in which reports show them."""
    return list(_FAMILIES)


def network_names() -> list[str]:
    """Return the networks that any family has."""
    return list(dict.fromkeys(name for family in _FAMILIES for name in family.network_names))


def preset_names() -> list[str]:
    """Return the presets that any family has."""
    return list(dict.fromkeys(name for family in _FAMILIES for name in family.presets))


def family_of(env_id: str) -> Family:
    """Return the family that an id belongs to: of those whose prefix fits, the one with the longest."""
    fitting = [family for family in _FAMILIES if plain_id(env_id).startswith(family.prefix)]
    return max(fitting, key=lambda family: len(family.prefix))
