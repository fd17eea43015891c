"""The MinAtar family: its ids, and how they are made, restored, drawn and named. The games load when one is made."""

import inspect
import io
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from dae.envs.family import SB3_PRESET, Family, Network, Protocol
from dae.envs.minatar.rendering import SCALE
from dae.errors import InvalidValue, nearest
from dae.paper import paper_games
from dae.serialization import BadData

if TYPE_CHECKING:
    from gymnasium import Space
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs

_GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
_ACTIONS = ("stay", "left", "up", "right", "down", "fire")

# The ids of the `minatar` package: v0 has all six actions, v1 those that have an effect.
MINATAR_IDS: dict[str, dict[str, Any]] = {
    f"MinAtar/{game.title().replace('_', '')}-v{version}": {"game": game, "use_minimal_action_set": version == 1}
    for game in _GAMES
    for version in (0, 1)
}


class MinAtar(Family):
    """The games of the `minatar` package in our compiled batch."""

    name = "minatar"
    label = "MinAtar"
    prefix = "MinAtar/"
    protocol = Protocol(tuple(f"MinAtar/{game}-v1" for game in paper_games("minatar")), frames=10_000_000, seeds=50)
    bytes_per_env = 1_000
    cell_size = SCALE
    simulated_at_once = 1024
    env_settings = {"minatar_version": "version", "sticky_actions": "sticky_action_prob"}  # noqa: RUF012
    presets = {  # noqa: RUF012
        "paper": {"frames": protocol.frames},
        "quick": {"actors": 32, "frames": 1_000_000, "epochs": 3, "learning_rate": 1e-3, "finishing": False},
        SB3_PRESET: {"actors": 8, "frames": 200_000, "finishing": False},
    }
    presets_with_few_actors = frozenset({"quick"})

    def require_known(self, env_id: str) -> None:
        if env_id not in MINATAR_IDS:
            raise InvalidValue(f"environment {env_id!r} is not known{nearest(env_id, MINATAR_IDS, most=3)}")

    def make(self, env_id: str, n_envs: int, seed: int | None, **options: Any) -> "VecEnv":
        from dae.envs.minatar.batch import MinAtarBatch
        from dae.envs.minatar.vec_env import MinAtarVecEnv

        self.require_known(env_id)
        render_mode = options.pop("render_mode", None)
        settings = MINATAR_IDS[env_id]
        known = set(inspect.signature(MinAtarBatch).parameters) - {"n_envs", "seed"} - set(settings)
        for name in options:
            if name not in known:
                choices = ", ".join(sorted(known | {"render_mode"}))
                raise InvalidValue(f"{name} is not an option of {env_id}; choose from {choices}")
        return MinAtarVecEnv(MinAtarBatch(n_envs=n_envs, seed=seed, **settings, **options), render_mode=render_mode)

    def can_be_restored(self, env_id: str, **options: Any) -> bool:
        return True

    def take_snapshot(self, env: "VecEnv", observations: "VecEnvObs") -> bytes:
        file = io.BytesIO()
        np.save(file, env.get_state(), allow_pickle=False)  # type: ignore[attr-defined]
        return file.getvalue()

    def restore_snapshot(self, env: "VecEnv", snapshot: bytes) -> "VecEnvObs":
        env.reset()
        own = env.get_state()  # type: ignore[attr-defined]
        file = io.BytesIO(snapshot)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        content = file.read()
        # `numpy.load` would allocate what the header claims.
        if (shape, dtype, len(content)) != (own.shape, own.dtype, own.nbytes):
            raise BadData(f"it is not a snapshot of {len(own)} of these games")
        env.set_state(np.frombuffer(content, own.dtype))  # type: ignore[attr-defined]
        observations: VecEnvObs = env.observe()  # type: ignore[attr-defined]
        return observations

    def draw(self, env: "VecEnv") -> "NDArray[np.uint8]":
        return np.asarray(env.get_images()[0])

    def draw_last(self, env: "VecEnv", observation: Any) -> "NDArray[np.uint8]":
        return np.asarray(env.batch.render(np.asarray(observation)[None])[0])  # type: ignore[attr-defined]

    def action_names(self, env: "VecEnv") -> list[str]:
        return [_ACTIONS[action] for action in env.get_attr("action_set")[0]]

    def network(self, name: str, observation_space: "Space[Any]", atari_trunk: str) -> Network:
        return Network("CnnPolicy", "MinAtarCNN", {"width": 4 if name == "wide" else 1}, net_arch=())


def register_minatar() -> None:
    """Register the ids for `gymnasium.make` and `gymnasium.make_vec`; ids that are taken are left unchanged."""
    taken = [env_id for env_id in MINATAR_IDS if env_id in gym.registry]
    if any(gym.registry[env_id].entry_point != "dae.envs.minatar:MinAtarEnv" for env_id in taken):
        gym.logger.warn(
            f"{taken[0]} and others are registered by another package: gymnasium.make makes its environments, "
            "dae.make_vec_env those of dae"
        )
    for env_id, options in MINATAR_IDS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point="dae.envs.minatar:MinAtarEnv",
                vector_entry_point="dae.envs.minatar:MinAtarVectorEnv",
                kwargs=dict(options),
            )
