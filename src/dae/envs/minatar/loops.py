"""The loops over environments, compiled once for each game."""

import hashlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from numba import njit, prange

from dae.envs.minatar.rng import uniform

# The loops below use these names; `compiled` gives each copy those of its game, and a range that is divided or not.
step: Any = None
reset: Any = None
observe: Any = None
each: Any = range


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
):
    """Play one step in every environment; one whose episode ends starts the next at once."""
    for i in each(len(states)):
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
    for i in each(len(states)):
        s = states[i]
        if restart[i]:
            s.episode_return = 0
            s.episode_length = 0
            reset(s)
        observe(s, planes[i])


def _find_invalid(actions, n_actions):
    """Return the first environment whose action is not one of 0, …, n_actions − 1, or -1 if all are valid."""
    for i in range(len(actions)):
        if actions[i] < 0 or actions[i] >= n_actions:
            return i
    return -1


@cache
def _say_that_nothing_is_cached() -> None:
    print("dae: compiled code cannot be cached here; set NUMBA_CACHE_DIR to a writable folder", file=sys.stderr)


def _compile(function: Any, **options: Any) -> Any:
    """Compile with Numba, with its disk cache where a folder for it is writable."""
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # Numba found no folder that can be written to
        _say_that_nothing_is_cached()
        return njit(function, **options)


first_invalid = _compile(_find_invalid)


@cache
def compiled(loop: FunctionType, game: ModuleType, parallel: bool = False) -> Any:
    """Compile a loop for one game.

    Numba finds cached code by the function's name and does not notice when what it calls has changed; so the name
    holds a digest of all the sources that can take part.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    name = "_".join((loop.__name__, game.__name__.split(".")[-1], "parallel" if parallel else "serial", digest))
    names = {"step": game.step, "reset": game.reset, "observe": game.observe, "uniform": uniform}
    names |= {"each": prange if parallel else range, "__name__": __name__, "__builtins__": __builtins__}
    copy = FunctionType(loop.__code__.replace(co_name=name, co_qualname=name), names)
    return _compile(copy, parallel=parallel)


@contextmanager
def announced(name: str, patience: float = 1.0) -> Iterator[None]:
    """Tell the user if compilation makes them wait; loading from the cache prints nothing."""
    start = time.perf_counter()
    message = f"dae: preparing MinAtar {name}; it is compiled for this machine once, then cached ..."
    timer = threading.Timer(patience, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    seconds = time.perf_counter() - start
    if seconds > patience:
        print(f"dae: ready after {seconds:.1f} s", file=sys.stderr, flush=True)
