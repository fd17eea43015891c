"""What can be chosen for Atari games."""

from dataclasses import dataclass, fields
from typing import Any

from dae.errors import InvalidValue
from dae.rules import COUNT, FRACTION, SWITCH, Rule, check_fields, one_of, optional, ruled

FRAME_SKIP = 4  # frames of the game in a step of the agent


@dataclass(frozen=True)
class AtariOptions:
    """The options of `dae.make_vec_env` for Atari; the defaults are the paper's, and not those of the ids."""

    sticky_action_prob: float = ruled(0.0, FRACTION)  # for each frame
    noop_max: int = ruled(30, Rule("an integer in [0, 1000]", lambda n: type(n) is int and 0 <= n <= 1000))
    terminal_on_life_loss: bool = ruled(True, SWITCH)
    clip_reward: bool = ruled(True, SWITCH)  # to its sign
    max_episode_frames: int = ruled(
        400_000, Rule("an integer in [1, 2^31)", lambda n: type(n) is int and 0 < n < 2**31)
    )
    full_action_space: bool = ruled(False, SWITCH)
    n_processes: int | None = ruled(None, optional(COUNT, "for as many as PyTorch has threads"))
    render_mode: str | None = ruled(None, optional(one_of("rgb_array"), "for none"))
    backend: str = ruled("dae", one_of("dae", "sb3"))

    @staticmethod
    def of(env_id: str, options: dict[str, Any]) -> "AtariOptions":
        """Return options; what is none of them is refused."""
        known = [field.name for field in fields(AtariOptions)]
        for name in options:
            if name not in known:
                raise InvalidValue(f"{name} is not an option of {env_id}; choose from {', '.join(sorted(known))}")
        chosen = AtariOptions(**options)
        check_fields(chosen)
        if chosen.backend == "sb3" and chosen.n_processes is not None:
            raise InvalidValue(f"n_processes is {chosen.n_processes}: with backend 'sb3' there is one")
        return chosen
