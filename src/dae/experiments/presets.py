"""The paper's settings, for programs that make their own `dae.PPO`."""

import dataclasses
from typing import Any

from dae.agent.settings import falling
from dae.catalog import require_estimator
from dae.envs import families
from dae.errors import InvalidValue, nearest
from dae.hyperparameters import Hyperparameters, as_settings


def paper_settings(family: str = "minatar", advantage: str = "dae") -> dict[str, Any]:
    """Return the paper's settings as arguments of `dae.PPO`: learning rate and clip range fall to 0 over a run.

    They are made for 1024 actors:

        env = dae.make_vec_env("MinAtar/Breakout-v1", 1024)
        model = dae.PPO("CnnPolicy", env, **dae.paper_settings("minatar")).learn(10_000_000)
    """
    known = {known.name: known for known in families() if known.protocol}
    if family not in known:
        raise InvalidValue(f"family is {family!r}: it must be one of {', '.join(known)}{nearest(family, known)}")
    of_ppo = {field.name for field in dataclasses.fields(Hyperparameters)}
    preset = {name: value for name, value in known[family].preset("paper").items() if name in of_ppo}
    settings = Hyperparameters(**as_settings(require_estimator(advantage).paper) | preset)
    return {"advantage": advantage, **settings.arguments(falling)}
