"""Environments: `make_vec_env`, and the families of environments behind it."""

from dae.envs.atari.family import Atari
from dae.envs.family import (
    Family,
    Network,
    Protocol,
    families,
    family_of,
    network_names,
    preset_names,
    register_family,
)
from dae.envs.generic.family import Generic
from dae.envs.make import make_vec_env
from dae.envs.minatar.family import MinAtar, register_minatar

__all__ = [
    "Family",
    "Generic",
    "Network",
    "Protocol",
    "families",
    "family_of",
    "make_vec_env",
    "network_names",
    "preset_names",
    "register_family",
    "register_minatar",
]

# In the order in which reports show them.
for _family in (MinAtar(), Atari(), Generic()):
    register_family(_family)
