"""Direct Advantage Estimation: learn which actions mattered, and train PPO with it.

The names below are the public interface. They load on first use, so that reading a run folder or asking for
`dae --help` does not wait for PyTorch. Importing the package makes the MinAtar ids known to gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dae.envs.registration import register_minatar

if TYPE_CHECKING:
    from dae.agent import PPO
    from dae.core import center, dae_loss, gae
    from dae.envs import make_vec_env
    from dae.experiments.runs import load_run

__version__ = "0.1.0.dev0"

_HOME = {
    "PPO": "dae.agent",
    "center": "dae.core",
    "dae_loss": "dae.core",
    "gae": "dae.core",
    "load_run": "dae.experiments.runs",
    "make_vec_env": "dae.envs",
}

_ROOMS = ("agent", "core", "envs", "runs", "theory")

__all__ = ["PPO", "__version__", "center", "dae_loss", "gae", "load_run", "make_vec_env"]

register_minatar()


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"dae.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'dae' has no attribute '{name}'; its public names are {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_ROOMS])
