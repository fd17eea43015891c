"""A batch of MinAtar games: plain arrays in, plain arrays out. The environments for users are thin shells around it."""

import os
import secrets
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from dae.envs.minatar import asterix, breakout, freeway, seaquest, seaquest_1_0_10, space_invaders
from dae.envs.minatar.loops import announced, compiled, first_invalid, start_range, step_range
from dae.envs.minatar.rendering import SCALE, render
from dae.envs.minatar.rng import random_streams
from dae.envs.minatar.state import require_valid, state_dtype

Flags = NDArray[np.bool_]
States = NDArray[np.void]

GAMES: dict[str, ModuleType] = {
    "asterix": asterix,
    "breakout": breakout,
    "freeway": freeway,
    "seaquest": seaquest,
    "space_invaders": space_invaders,
}
# The versions of the `minatar` package whose rules there are, and which games differ from today's.
VERSIONS: dict[str, dict[str, ModuleType]] = {"1.0.15": {}, "1.0.10": {"seaquest": seaquest_1_0_10}}


class _Threads:
    """Who may use Numba's threads: one caller at a time, and no process forked from one that has used them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: int | None = None

    def usable(self) -> bool:
        if self._process is None:
            self._process = os.getpid()
            self._start()
        return self._process == os.getpid()

    def _start(self) -> None:
        """Let Numba start its threads; it then sets the number of OpenMP's, which PyTorch uses too, to its own."""
        torch = sys.modules.get("torch")
        before = None if torch is None else torch.get_num_threads()
        numba.get_num_threads()
        if torch is not None:
            torch.set_num_threads(before)


_threads = _Threads()


class BatchStep(NamedTuple):
    """What one step of N environments brought; every array is new and stays as it is."""

    observations: Flags  # (N, C, 10, 10): where an episode ended, already the first of the next
    rewards: NDArray[np.float32]  # (N,)
    terminated: Flags  # (N,)
    truncated: Flags  # (N,)
    ended: NDArray[np.intp]  # (K,): the environments whose episode ended, in order
    final_observations: Flags  # (K, C, 10, 10): the last observations of those episodes
    episode_returns: NDArray[np.float32]  # (K,)
    episode_lengths: NDArray[np.int32]  # (K,)


class MinAtarBatch:
    """N environments of one game, stepped together by compiled code.

    Environment i draws from a random stream of its own, made from `seed` and i: it plays the same whatever the size of
    the batch, the number of threads, or (with `first_index`) the way a larger batch is divided.
    """

    def __init__(
        self,
        game: str,
        n_envs: int,
        *,
        seed: int | None = None,
        sticky_action_prob: float = 0.0,
        difficulty_ramping: bool = False,
        use_minimal_action_set: bool = True,
        max_episode_steps: int | None = None,
        n_threads: int = 1,
        first_index: int = 0,
        version: str = "1.0.15",
    ) -> None:
        if game not in GAMES:
            raise ValueError(f"game={game!r} is not known; choose one of {', '.join(GAMES)}")
        if version not in VERSIONS:
            raise ValueError(f"version={version!r} is not known; choose one of {', '.join(VERSIONS)}")
        _require_integer("n_envs", n_envs, 1)
        _require_integer("n_threads", n_threads, 1)
        _require_integer("first_index", first_index, 0)
        if max_episode_steps is not None:
            _require_integer("max_episode_steps", max_episode_steps, 1, 2**31 - 1)
        if not isinstance(sticky_action_prob, int | float | np.floating) or not 0 <= sticky_action_prob <= 1:
            raise ValueError(f"sticky_action_prob is {sticky_action_prob!r}: it must be a number in [0, 1]")
        for name, option in (
            ("difficulty_ramping", difficulty_ramping),
            ("use_minimal_action_set", use_minimal_action_set),
        ):
            if not isinstance(option, bool | np.bool_):
                raise ValueError(f"{name} is {option!r}: it must be True or False")
        self.game, self.version = game, version
        self.n_envs = n_envs
        self.channels = tuple(self.rules.CHANNELS)
        self.action_set = np.array(self.rules.MINIMAL_ACTIONS if use_minimal_action_set else range(6))
        self._options = (float(sticky_action_prob), bool(difficulty_ramping), max_episode_steps or 0)
        self._indices = first_index + np.arange(n_envs)
        self.n_threads = min(n_threads, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        self._at_first_start = False
        self._states: States = np.zeros(n_envs, state_dtype(self.rules.FIELDS))
        # The loop writes the data of ended episodes here. It is read within the step, so the arrays can be reused.
        self._at_end = (self._planes(), np.empty(n_envs, np.float32), np.empty(n_envs, np.int32))
        with announced(game.replace("_", " ").title()):
            self.reset(secrets.randbits(63) if seed is None else seed)
            idle = self.get_state()
            self.step(np.zeros(n_envs, np.int64))
            self.set_state(idle)
        self._at_first_start = True

    @property
    def rules(self) -> ModuleType:
        return VERSIONS[self.version].get(self.game) or GAMES[self.game]

    @property
    def colours(self) -> dict[str, tuple[int, int, int]]:
        """The colour of each channel in pictures; where several are set, the last one shows."""
        return dict(self.rules.CHANNELS)

    @property
    def n_actions(self) -> int:
        return len(self.action_set)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return len(self.channels), 10, 10

    @property
    def observation_space(self) -> "Box[Any]":
        return Box(0, 1, self.observation_shape, np.bool_)

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.n_actions)

    def reset(self, seed: int | Sequence[int] | None = None, *, mask: Flags | None = None) -> Flags:
        """Start new episodes, everywhere or where `mask` says so, and return the observations of all.

        With a seed the random streams restart too; one seed serves all environments, a sequence gives each its own.
        The first reset of a batch is the start that its own seed gave it.
        """
        if self._at_first_start and seed is None and mask is None:
            self._at_first_start = False
            return self.observe()
        self._at_first_start = False
        mask = np.ones(self.n_envs, bool) if mask is None else np.require(mask, requirements=["C", "W"])
        if mask.shape != (self.n_envs,) or mask.dtype != bool:
            raise ValueError(f"mask is {mask.dtype} of shape {mask.shape}: it must be bool of shape ({self.n_envs},)")
        if seed is not None:
            self._seed(seed, mask)
        return self._start(mask)

    def _start(self, mask: Flags) -> Flags:
        planes = self._planes()
        compiled(start_range, self.rules)(self._states, planes, mask)
        return self._as_observations(planes)

    def _seed(self, seed: Any, mask: Flags) -> None:
        seeds, indices = [seed], self._indices
        if np.ndim(seed):
            seeds, indices = list(seed), np.zeros(self.n_envs, np.int64)
            if len(seeds) != self.n_envs:
                raise ValueError(f"seed has {len(seeds)} entries: it must be one number or {self.n_envs} of them")
        for number in seeds:
            _require_integer("seed", number, 0, 2**64 - 1)
        streams = random_streams(seeds, indices)
        for name, words in zip(("rng0", "rng1"), streams, strict=True):
            self._states[name][mask] = words[mask]
        self._states["last_action"][mask] = 0

    def step(self, actions: ArrayLike) -> BatchStep:
        """Play one step with an action (0, 1, … of the action set) for each environment."""
        chosen = self._require_actions(actions)
        self._at_first_start = False
        planes = self._planes()
        rewards = np.empty(self.n_envs, np.float32)
        terminated, truncated = np.empty((2, self.n_envs), bool)
        final_planes, returns, lengths = self._at_end
        outputs = (planes, rewards, terminated, truncated, final_planes, returns, lengths)
        arguments = (self._states, chosen, self.action_set, *self._options, *outputs)
        self._run(step_range, arguments)
        ended = np.flatnonzero(terminated | truncated)
        return BatchStep(
            observations=self._as_observations(planes),
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            ended=ended,
            final_observations=self._as_observations(final_planes.take(ended, axis=0)),
            episode_returns=returns[ended],
            episode_lengths=lengths[ended],
        )

    def _run(self, loop: Any, arguments: tuple[Any, ...]) -> None:
        """Run a compiled loop over all environments, on as many threads as asked for."""
        if self.n_threads == 1 or not _threads.usable():
            compiled(loop, self.rules)(*arguments)
            return
        with _threads.lock:
            before = numba.get_num_threads()
            numba.set_num_threads(self.n_threads)
            try:
                compiled(loop, self.rules, parallel=True)(*arguments)
            finally:
                numba.set_num_threads(before)

    def _require_actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.n_envs,):
            raise ValueError(f"actions have shape {chosen.shape}: it must be ({self.n_envs},), one per environment")
        if chosen.dtype.kind not in "iu":
            raise TypeError(f"actions have dtype {chosen.dtype}: it must be an integer dtype")
        chosen = np.ascontiguousarray(chosen, np.int64)
        if not chosen.flags.writeable:
            chosen = chosen.copy()  # one type, so that there is one compiled version
        invalid = first_invalid(chosen, self.n_actions)
        if invalid >= 0:
            raise ValueError(
                f"action {chosen[invalid]} of environment {invalid} is out of range: "
                f"{self.game} has the actions 0 to {self.n_actions - 1}"
            )
        return chosen

    def observe(self) -> Flags:
        """Return the current observations, (N, C, 10, 10)."""
        return self._start(np.zeros(self.n_envs, bool))

    def get_state(self) -> States:
        """Return an exact snapshot of all environments, their random streams and counters included.

        It is one plain record array (N,): index, repeat or concatenate it as you like, and keep it with `numpy.save`.
        """
        return self._states.copy()

    def set_state(self, state: States, indices: Any = None) -> None:
        """Restore a snapshot, into all environments or into those of `indices`; `observe()` shows the result."""
        state = np.atleast_1d(np.asarray(state))
        if state.dtype != self._states.dtype:
            raise ValueError(
                f"state has fields {state.dtype.names}: "
                f"it must be a snapshot of {self.game}, with {self._states.dtype.names}"
            )
        everywhere = np.arange(self.n_envs)
        try:
            slots = everywhere if indices is None else np.atleast_1d(everywhere[indices])
        except IndexError as error:
            raise ValueError(
                f"indices {indices!r} are not all environments from 0 to {self.n_envs - 1}: {error}"
            ) from error
        if slots.shape != state.shape or len(np.unique(slots)) != slots.size:
            raise ValueError(
                f"state has shape {state.shape} for slots of shape {slots.shape}: "
                "it must hold one environment for each slot, and each slot once"
            )
        require_valid(state, self.rules.FIELDS)
        self._states[slots] = state
        self._at_first_start = False

    def render(self, observations: Flags | None = None, scale: int = SCALE) -> NDArray[np.uint8]:
        """Return a picture of every environment as it is now, or of these observations, (N, 10·scale, 10·scale, 3)."""
        shown = self.observe() if observations is None else observations
        return render(shown, list(self.colours.values()), scale)

    def _planes(self) -> NDArray[np.uint8]:
        return np.empty((self.n_envs, 100 * len(self.channels)), np.uint8)

    def _as_observations(self, planes: NDArray[np.uint8]) -> Flags:
        return planes.view(np.bool_).reshape(-1, *self.observation_shape)


def _require_integer(name: str, value: Any, low: int, high: int | None = None) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"{name} is {value!r}: it must be an integer of at least {low}")
    if high is not None and value > high:
        raise ValueError(f"{name} is {value!r}: it must be at most {high}")
