"""Seaquest by the rules of `minatar` 1.0.10, which the authors of the paper used: air lasts one step longer.

An empty tank does not end the game yet; the next step does, and meanwhile the gauge shows nine cells of ten.
"""

from numba import njit

from dae.envs.minatar import seaquest
from dae.envs.minatar.seaquest import CHANNELS, MINIMAL_ACTIONS, play, reset

__all__ = ["CHANNELS", "FIELDS", "MINIMAL_ACTIONS", "observe", "reset", "step"]

FIELDS = tuple(field._replace(low=-1) if field.name == "oxygen" else field for field in seaquest.FIELDS)
_observe_today = seaquest.observe


@njit
def step(s, action, ramping):
    return play(s, action, ramping, -1)


@njit
def observe(s, planes):
    _observe_today(s, planes)
    if s.oxygen < 0:
        planes[790:799] = 1
