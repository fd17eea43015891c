"""The family of every id that no other family claims: made by gymnasium, stepped by Stable-Baselines3."""

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from dae.envs.family import Family, Network
from dae.errors import InvalidValue, UserError, nearest, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs


class Generic(Family):
    """Environments about which nothing more is known than what gymnasium says."""

    name = "other"
    label = "Other environments"
    prefix = ""
    presets = {  # noqa: RUF012
        # The paper's hyperparameters, at a size for one machine: it has no other tasks than games.
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
    }

    def require_known(self, env_id: str) -> None:
        try:
            gym.spec(env_id)
        except gym.error.Error as error:
            if env_id in gym.registry:
                raise InvalidValue(one_line(error)) from error
            hint = nearest(env_id, gym.registry, "gymnasium.pprint_registry() lists those installed", most=3)
            raise InvalidValue(f"environment {env_id!r} is not known{hint}") from error

    def make(self, env_id: str, n_envs: int, seed: int, **options: Any) -> "VecEnv":
        from stable_baselines3.common.env_util import make_vec_env

        self.require_known(env_id)
        try:
            # A function, because for an id Stable-Baselines3 would ask for pictures that no one wants.
            return make_vec_env(lambda: gym.make(env_id, **options), n_envs, seed=seed)
        except gym.error.Error as error:  # a package is missing, say
            raise UserError(f"{env_id} cannot be made: {one_line(error)}") from error

    def can_be_restored(self, env_id: str) -> bool:
        from dae.envs.generic.snapshots import play_on_alike

        first, second = (self.make(env_id, 1, seed) for seed in (0, 1))
        return play_on_alike(first, second)

    def take_snapshot(self, env: "VecEnv", observations: "VecEnvObs") -> bytes:
        from dae.envs.generic.snapshots import take_snapshot

        return take_snapshot(env, observations)

    def restore_snapshot(self, env: "VecEnv", snapshot: bytes) -> "VecEnvObs":
        from dae.envs.generic.snapshots import restore_snapshot

        return restore_snapshot(env, snapshot)

    def action_names(self, env: "VecEnv") -> list[str]:
        return [str(action) for action in range(int(getattr(env.action_space, "n", 0)))]

    def draw(self, env: "VecEnv") -> "NDArray[np.uint8]":
        pictures = env.get_images()
        if not len(pictures) or pictures[0] is None:
            raise UserError("it renders nothing")
        return np.asarray(pictures[0], np.uint8)

    def network(self, name: str, observation_space: "spaces.Space[Any]", atari_trunk: str) -> Network:
        if isinstance(observation_space, spaces.Dict):
            if name != "baseline":
                raise InvalidValue(f"network is {name!r}: for observations with several parts it must be baseline")
            return Network("MultiInputPolicy")
        wide = name == "wide"
        if len(observation_space.shape or ()) != 3:
            return Network("MlpPolicy", net_arch=(256, 256) if wide else (64, 64))
        options = {"width": 2 if wide else 1, "channels": atari_trunk}
        return Network("CnnPolicy", "AtariCNN", options, net_arch=())
