"""Environments: `make_vec_env`, and the families of environments behind it."""

from dae.envs.atari.family import Atari
from dae.envs.family import (
    SB3_PRESET as SB3_PRESET,
    Family as Family,
    Network as Network,
    Protocol as Protocol,
    families as families,
    family_of as family_of,
    full_id as full_id,
    network_names as network_names,
    preset_names as preset_names,
    register_family as register_family,
)
from dae.envs.ids import (
    import_module_of as import_module_of,
    plain_id as plain_id,
    require_trust as require_trust,
    trust_option as trust_option,
)
from dae.envs.making import make_vec_env as make_vec_env
from dae.envs.minatar.family import MinAtar, register_minatar as register_minatar

for _family in (MinAtar(), Atari(), Family()):
    register_family(_family)
