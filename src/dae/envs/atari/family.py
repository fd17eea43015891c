"""The Atari family: its ids, and how they are made, restored, drawn and named. Emulators load when a game is made."""

import functools
import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dae.envs.atari.options import FRAME_SKIP, AtariOptions
from dae.envs.family import SB3_PRESET, Family, Network, Protocol
from dae.envs.ids import plain_id
from dae.errors import InvalidValue, UserError, nearest
from dae.paper import paper_games

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import Space
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs

_FOR_SEVERAL = {"combat", "joust", "maze_craze", "warlords"}
# The channels of the authors' parameter files, which probably made the paper's tables, and of CnnPolicy.
_TRUNK: Mapping[str, Any] = {"atari_trunk": "code"}


class Atari(Family):
    """Games of the Arcade Learning Environment, as the paper has them."""

    name = "atari"
    label = "Atari"
    prefix = "ALE/"
    protocol = Protocol(tuple(f"ALE/{game}-v5" for game in paper_games("atari")), frames=40_000_000, seeds=10)
    presets = {  # noqa: RUF012
        "paper": {**_TRUNK, "frames": protocol.frames},
        # With few actors the paper's DAE ends up with one action before it has learned anything: docs/atari.md.
        "quick": {
            **_TRUNK,
            "actors": 16,
            "frames": 4_000_000,
            "finishing": False,
            "epochs": 3,
            "learning_rate": 5e-4,
            "critic_coef": 0.5,
            "max_grad_norm": 0.5,
        },
        SB3_PRESET: {**_TRUNK, "actors": 8, "frames": 1_000_000, "finishing": False},
    }
    presets_with_few_actors = frozenset({"quick"})
    frames_per_step = FRAME_SKIP
    bytes_per_env = 1_000_000
    network_names = ("baseline", "wide", "deep")
    env_settings = {"sticky_actions": "sticky_action_prob", "backend": "backend"}  # noqa: RUF012

    def ids_named(self, name: str) -> list[str]:
        """Return the ids of games with this name, also as the paper's ids have it: PongNoFrameskip-v4."""
        return super().ids_named(name.removesuffix("NoFrameskip-v4"))

    def require_known(self, env_id: str) -> None:
        missing = [name for name in ("ale_py", "cv2") if importlib.util.find_spec(name) is None]
        if missing:
            raise UserError(f"{env_id} needs {' and '.join(missing)}, not installed here: pip install 'dae-rl[atari]'")
        if env_id not in _roms():
            raise InvalidValue(f"environment {env_id!r} is not known{nearest(env_id, _roms(), most=3)}")
        if _roms()[env_id] in _FOR_SEVERAL:
            raise InvalidValue(f"environment {env_id!r} is a game for several players: choose one for a single player")

    def make(self, env_id: str, n_envs: int, seed: int | None, **options: Any) -> "VecEnv":
        """Make games that step together; `backend="sb3"` makes those of Stable-Baselines3, to compare with."""
        self.require_known(env_id)
        chosen = AtariOptions.of(env_id, options)
        if chosen.backend == "sb3":
            from dae.envs.atari.reference import make_reference

            return make_reference(env_id, chosen, n_envs, seed)
        from dae.envs.atari.vec_env import AtariVecEnv

        return AtariVecEnv(_roms()[env_id], chosen, n_envs, seed)

    def make_separately(
        self, env_id: str, n_envs: int, seed: int | None, wrapping: Mapping[str, Any], **options: Any
    ) -> "VecEnv":
        self.require_known(plain_id(env_id))
        from dae.envs.atari.reference import make_separate_games

        return make_separate_games(env_id, AtariOptions.of(env_id, options), n_envs, seed, **wrapping)

    def can_be_restored(self, env_id: str, **options: Any) -> bool:
        return AtariOptions.of(env_id, options).backend == "dae"

    def take_snapshot(self, env: "VecEnv", observations: "VecEnvObs") -> bytes:
        snapshot: bytes = env.take_snapshot()  # type: ignore[attr-defined]
        return snapshot

    def restore_snapshot(self, env: "VecEnv", snapshot: bytes) -> "VecEnvObs":
        observations: VecEnvObs = env.restore_snapshot(snapshot)  # type: ignore[attr-defined]
        return observations

    def action_names(self, env: "VecEnv") -> list[str]:
        names: list[str] = env.get_attr("action_names")[0]
        return names

    def draw_last(self, env: "VecEnv", observation: Any) -> "NDArray[np.uint8] | None":
        last: NDArray[np.uint8] | None = env.get_attr("last_screen")[0]
        return last

    def network(self, name: str, observation_space: "Space[Any]", atari_trunk: str) -> Network:
        if name == "deep":
            return Network("CnnPolicy", "ImpalaCNN", net_arch=())
        return super().network(name, observation_space, atari_trunk)


@functools.cache
def _roms() -> dict[str, str]:
    """Return the names of the files of all games, by id."""
    from ale_py import roms
    from ale_py.registration import rom_id_to_name

    return {f"ALE/{rom_id_to_name(rom)}-v5": rom for rom in roms.get_all_rom_ids()}
