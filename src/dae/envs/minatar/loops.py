"""The loops over environments, compiled once for each game."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from numba import njit

from dae.envs.minatar.rng import uniform

# The loops below use these names of a game; `compiled` gives each copy those of its own.
step: Any = None
reset: Any = None
observe: Any = None


def step_range(
    states,
    actions,
    action_set,
    sticky_action_prob,
    ramping,
    max_steps,
    planes,
    rewards,
    terminated,
    truncated,
    final_planes,
    returns,
    lengths,
    first,
    last,
):
    """Play one step in the environments from `first` to `last`; one whose episode ends starts the next at once."""
    for i in range(first, last):
        s = states[i]
        action = action_set[actions[i]]
        if sticky_action_prob > 0 and uniform(s) < sticky_action_prob:
            action = s.last_action
        s.last_action = action
        reward, terminal = step(s, action, ramping)
        s.episode_length += 1
        s.episode_return += reward
        cut = not terminal and 0 < max_steps <= s.episode_length
        rewards[i] = reward
        terminated[i] = terminal
        truncated[i] = cut
        if terminal or cut:
            observe(s, final_planes[i])
            returns[i] = s.episode_return
            lengths[i] = s.episode_length
            s.episode_return = 0
            s.episode_length = 0
            reset(s)
        observe(s, planes[i])


def start_range(states, planes, restart):
    """Observe all environments, after a fresh start where `restart` says so."""
    for i in range(len(states)):
        s = states[i]
        if restart[i]:
            s.episode_return = 0
            s.episode_length = 0
            reset(s)
        observe(s, planes[i])


@njit(cache=True)
def first_invalid(actions, n_actions):
    """The first environment whose action is none of 0, …, n_actions − 1, or -1."""
    for i in range(len(actions)):
        if actions[i] < 0 or actions[i] >= n_actions:
            return i
    return -1


@cache
def compiled(loop: FunctionType, game: ModuleType) -> Any:
    """Compile a loop for one game, from the disk cache where possible.

    Numba compiles anew when the file that a function claims to come from has changed: each copy claims its game's.
    """
    names = {"step": game.step, "reset": game.reset, "observe": game.observe, "uniform": uniform}
    code = loop.__code__.replace(co_filename=str(game.__file__))
    copy = FunctionType(code, {"__name__": game.__name__, "__builtins__": __builtins__, **names})
    return njit(copy, cache=True, nogil=True)


@contextmanager
def announced(name: str, patience: float = 1.0) -> Iterator[None]:
    """Tell the user what takes so long, if compilation does; a load from the cache stays silent."""
    start = time.perf_counter()
    message = f"dae: compiling MinAtar {name} for this machine (once; the result is cached) ..."
    timer = threading.Timer(patience, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    seconds = time.perf_counter() - start
    if seconds > patience:
        print(f"dae: compiled in {seconds:.1f} s", file=sys.stderr, flush=True)
