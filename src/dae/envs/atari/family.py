"""The Atari family: the paper's protocol and networks."""

from typing import TYPE_CHECKING, Any

from dae.envs.family import SB3_PRESET, Family, Network, Protocol
from dae.paper import paper_games

if TYPE_CHECKING:
    from gymnasium import Space


class Atari(Family):
    """Games of the Arcade Learning Environment."""

    name = "atari"
    label = "Atari"
    prefix = "ALE/"
    protocol = Protocol(tuple(f"ALE/{game}-v5" for game in paper_games("atari")), frames=40_000_000, seeds=10)
    # The channels of the authors' parameter files, which probably made the paper's tables; its figure has others.
    presets = {  # noqa: RUF012
        "paper": {"frames": protocol.frames, "atari_trunk": "code"},
        "quick": {"actors": 8, "frames": 1_000_000, "finishing": False, "atari_trunk": "code"},
        SB3_PRESET: {"actors": 8, "frames": 1_000_000, "finishing": False, "atari_trunk": "code"},
    }
    frames_per_step = 4
    network_names = ("baseline", "wide", "deep")

    def network(self, name: str, observation_space: "Space[Any]", atari_trunk: str) -> Network:
        if name == "deep":
            return Network("CnnPolicy", "ImpalaCNN", net_arch=())
        return super().network(name, observation_space, atari_trunk)
