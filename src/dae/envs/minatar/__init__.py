"""The five MinAtar games as batched compiled code, with the rules of the `minatar` package, version 1.0.15.

MinAtar was created by Kenny Young and Tian Tian and is licensed under the GPL, version 3; so is this folder (LICENSE
beside this file), unlike the rest of the project.
"""

from typing import TYPE_CHECKING

from dae.lazy import load_lazily

if TYPE_CHECKING:
    from dae.envs.minatar.batch import GAMES, BatchStep, MinAtarBatch
    from dae.envs.minatar.gymnasium_envs import MinAtarEnv, MinAtarVectorEnv

__all__ = ["GAMES", "BatchStep", "MinAtarBatch", "MinAtarEnv", "MinAtarVectorEnv"]

_BATCH, _ENVS = "dae.envs.minatar.batch", "dae.envs.minatar.gymnasium_envs"
__getattr__ = load_lazily(
    __name__, dict.fromkeys(("GAMES", "BatchStep", "MinAtarBatch"), _BATCH) | dict.fromkeys(__all__[3:], _ENVS)
)
