"""Direct Advantage Estimation: learn which actions mattered, and train PPO with it.

The names below are the public interface. They load on first use, so that reading a run folder or asking for
`dae --help` does not wait for PyTorch. Importing the package registers the MinAtar ids with gymnasium.
"""

from typing import TYPE_CHECKING

from dae.envs import register_minatar
from dae.lazy import load_lazily

if TYPE_CHECKING:
    from dae.agent import PPO
    from dae.core import center, dae_loss, gae
    from dae.envs import make_vec_env
    from dae.experiments.loading import load_run
    from dae.experiments.presets import paper_settings
    from dae.experiments.quality.measuring import measure_quality

__version__ = "0.1.0.dev0"

_HOMES = {
    "PPO": "dae.agent",
    "center": "dae.core",
    "dae_loss": "dae.core",
    "gae": "dae.core",
    "load_run": "dae.experiments.loading",
    "make_vec_env": "dae.envs",
    "measure_quality": "dae.experiments.quality.measuring",
    "paper_settings": "dae.experiments.presets",
    **{room: f"dae.{room}" for room in ("agent", "core", "envs", "runs", "theory")},
}

__all__ = [
    "PPO",
    "__version__",
    "center",
    "dae_loss",
    "gae",
    "load_run",
    "make_vec_env",
    "measure_quality",
    "paper_settings",
]

register_minatar()
__getattr__ = load_lazily("dae", _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
