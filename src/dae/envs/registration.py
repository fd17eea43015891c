"""The MinAtar ids, registered with gymnasium when `dae` is imported; the games themselves load when one is made."""

from typing import Any

import gymnasium as gym

_GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")

# The ids of the `minatar` package: v0 has all six actions, v1 those that have an effect.
MINATAR_IDS: dict[str, dict[str, Any]] = {
    f"MinAtar/{game.title().replace('_', '')}-v{version}": {"game": game, "use_minimal_action_set": version == 1}
    for game in _GAMES
    for version in (0, 1)
}


def register_minatar() -> None:
    """Make the ids known to `gymnasium.make` and `gymnasium.make_vec`; ids that are taken are left alone."""
    taken = [env_id for env_id in MINATAR_IDS if env_id in gym.registry]
    if any(gym.registry[env_id].entry_point != "dae.envs.minatar:MinAtarEnv" for env_id in taken):
        gym.logger.warn(
            f"{taken[0]} and others are registered by another package: gymnasium.make gives its environments, "
            "dae.make_vec_env ours"
        )
    for env_id, options in MINATAR_IDS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point="dae.envs.minatar:MinAtarEnv",
                vector_entry_point="dae.envs.minatar:MinAtarVectorEnv",
                kwargs=dict(options),
            )
