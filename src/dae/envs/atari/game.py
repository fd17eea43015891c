"""One game in an emulator, with the paper's preprocessing: that of Stable-Baselines3's `AtariWrapper`, step for step.

Nothing here is random but the no-ops at a game's start and sticky actions, and both follow from the seed and the number
of the game. So a game is restored by playing its actions again, without reading an emulator's state from a file.
"""

import copy
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from ale_py import Action, ALEInterface, ALEState, LoggerMode, roms
from numpy.typing import NDArray

from dae.envs.atari.options import FRAME_SKIP, AtariOptions
from dae.serialization import BadData

SIZE = 84  # height and width of what the agent sees
N_STACK = 4  # frames that it sees at once

Frame = NDArray[np.uint8]


def spoken(action: str) -> str:
    """Return what an action of the emulator is called.

    >>> spoken("NOOP"), spoken("UPRIGHTFIRE")
    ('noop', 'up right fire')
    """
    return " ".join(re.findall("NOOP|UP|DOWN|LEFT|RIGHT|FIRE", action)).lower()


class End(IntEnum):
    """How an episode of learning ended."""

    NOT = 0
    TERMINAL = 1  # a life was lost, or the game is over
    TRUNCATED = 2  # by the limit of frames


@dataclass(frozen=True)
class Progress:
    """Where a game is, as what was done in it."""

    seed: tuple[int, int]  # the second number tells apart the games of a batch
    number: int  # of the game, since the first one of this seed
    actions: bytes
    score: float  # to check that it comes out again


@dataclass(frozen=True)
class Clone:
    """A game as it is, for the memory of a process."""

    emulator: ALEState
    remembered: dict[str, Any]


@dataclass
class Outcome:
    """What a step led to."""

    frame: Frame
    reward: float
    end: End = End.NOT
    last_frame: Frame | None = None  # of an episode that ended; `frame` then is the first of the next one
    score: float | None = None  # of the whole game, where it ended
    length: int = 0  # in steps of the agent


# What a game knows of itself that its emulator does not; its screens are made anew in every step.
_REMEMBERED = ("_seed", "_number", "_actions", "_score", "_lives", "_held", "_rng", "_reseeded")


class Game:
    """A game that starts again when it is over, or goes on with the next life."""

    def __init__(self, rom: str, options: AtariOptions, screens: NDArray[np.uint8] | None = None) -> None:
        """Load a game; games may share the memory of their last two screens, which none needs beyond a step."""
        self._options = options
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._ale = ALEInterface()
        self._ale.setInt("random_seed", 0)
        self._ale.setFloat("repeat_action_probability", 0.0)  # ours follow from the seed
        self._ale.setInt("max_num_frames_per_episode", options.max_episode_frames)
        rom_path = roms.get_rom_path(rom)
        assert rom_path is not None, rom
        self._ale.loadROM(rom_path)
        self._ale.reset_game()
        # Some games remember the one before, which a reset does not clear.
        self._fresh = self._ale.cloneState(include_rng=False)
        legal = self._ale.getLegalActionSet() if options.full_action_space else self._ale.getMinimalActionSet()
        self.action_set = tuple(legal)
        # Some games wait for the fire button; the second action is what `AtariWrapper` does after it.
        self._opening = (1, 2) if Action.FIRE in self.action_set else ()
        self.screens = np.empty((2, *self._ale.getScreenDims(), 3), np.uint8) if screens is None else screens
        self._seen = 2  # screens of the last step; those of a step that a game's end cut short are fewer
        self._watching = True  # whether there is anyone to see the screens
        self._number, self._lives = -1, 0
        self.last_screen: NDArray[np.uint8] | None = None  # of the game before, if games are drawn

    def start(self, seed: tuple[int, int] | None) -> Frame:
        """Begin the first game of a seed, or the next one."""
        if seed is None:
            return self._begin_game(self._number + 1)
        self._seed = seed
        return self._begin_game(0)

    def step(self, action: int) -> Outcome:
        """Let the agent act for four frames."""
        self._actions.append(action)
        reward = self._act(action)
        lost = self._has_lost_a_life(self._lives)
        self._lives = self._ale.lives()
        outcome = Outcome(self._frame(), reward)
        if not lost and not self._is_over:
            return outcome
        terminal = lost or self._ale.game_over(with_truncation=False)
        outcome.end, outcome.last_frame = (End.TERMINAL if terminal else End.TRUNCATED), outcome.frame
        if not self._is_over and self._begin_life():
            outcome.frame = self._frame()
            return outcome
        if self._options.render_mode:
            self.last_screen = self.screen()
        outcome.score, outcome.length = self._score, len(self._actions)
        outcome.frame = self._begin_game(self._number + 1)
        return outcome

    def screen(self) -> NDArray[np.uint8]:
        """Return the picture on the screen, in its colours."""
        return np.asarray(self._ale.getScreenRGB())

    def progress(self) -> Progress | None:
        """Return where the game is; None if it does not follow from the actions, since it was reseeded."""
        if self._reseeded:
            return None
        return Progress(self._seed, self._number, bytes(self._actions), self._score)

    def clone(self) -> Clone:
        """Return the game as it is; the picture on its screen is not in it."""
        remembered = {name: getattr(self, name) for name in _REMEMBERED}
        return Clone(self._ale.cloneState(include_rng=False), copy.deepcopy(remembered))

    def become(self, clone: Clone) -> None:
        """Go on from a clone, of this game or another of the same kind."""
        self._ale.restoreState(clone.emulator)
        vars(self).update(copy.deepcopy(clone.remembered))

    def reseed(self, seed: int) -> None:
        """Let all that is random from here on, in the next games too, follow from another seed."""
        self._seed, self._rng, self._reseeded = (seed, 0), np.random.default_rng(seed), True

    def replay(self, progress: Progress, frame: Frame, on_the_way: Clone | None = None) -> None:
        """Bring the game to where it was, and showed this frame; it may begin with a clone of an earlier moment."""
        if max(progress.actions, default=0) >= len(self.action_set):
            raise BadData(f"a game's action is {max(progress.actions)}, and there are {len(self.action_set)}")
        self._watching = not progress.actions
        try:
            if on_the_way is None:
                self._seed = progress.seed
                shown = self._begin_game(progress.number)
            else:
                self.become(on_the_way)
            for i in range(len(self._actions), len(progress.actions)):
                self._watching = i + 1 == len(progress.actions)
                shown = self.step(progress.actions[i]).frame
        finally:
            self._watching = True
        if self.progress() != progress or not np.array_equal(shown, frame):
            raise BadData(
                "a game goes another way when it is played again: use the ale-py and options that it was played with"
            )

    def _begin_game(self, number: int) -> Frame:
        self._number, self._actions, self._reseeded = number, bytearray(), False
        self._rng = np.random.default_rng([*self._seed, number])
        self._reset()
        for _ in range(self._rng.integers(1, self._options.noop_max + 1) if self._options.noop_max else 0):
            self._emulate(0)
            if self._is_over:
                self._reset()
        self._look(0)
        self._seen = 1
        if not self._open():
            self._reset()
        self._lives = self._ale.lives()
        return self._frame()

    def _begin_life(self) -> bool:
        """Go on after the loss of a life, unless the game ends on the way."""
        self._act(0)  # away from where the life was lost
        going_on = not self._is_over and self._open()
        self._lives = self._ale.lives()
        return going_on

    def _open(self) -> bool:
        """Press what starts a game or a life; return whether the game is on."""
        for action in self._opening:
            lives = self._ale.lives()
            self._act(action)
            if not self._is_over and self._has_lost_a_life(lives):
                self._act(0)
            if self._is_over:
                return False
        return True

    def _reset(self) -> None:
        self._ale.restoreState(self._fresh)
        self._ale.reset_game()
        self._score, self._held = 0.0, 0

    def _act(self, action: int) -> float:
        """Hold an action for as long as the agent sees nothing; return the reward."""
        reward = 0.0
        self._seen = 0
        for i in range(FRAME_SKIP):
            reward += self._emulate(action)
            if i >= FRAME_SKIP - 2 or self._is_over:
                self._look(self._seen)
                self._seen += 1
            if self._is_over:
                break
        return reward

    def _emulate(self, action: int) -> float:
        """Let a frame of the game pass."""
        sticky = self._options.sticky_action_prob
        if not sticky or self._rng.random() >= sticky:
            self._held = action
        reward = float(self._ale.act(self.action_set[self._held]))
        self._score += reward
        return reward

    @property
    def _is_over(self) -> bool:
        return bool(self._ale.game_over())

    def _has_lost_a_life(self, before: int) -> bool:
        """Say whether there are fewer lives; some games show none for a while before they are over."""
        return self._options.terminal_on_life_loss and 0 < self._ale.lives() < before

    def _look(self, place: int) -> None:
        if self._watching:
            self._ale.getScreenRGB(self.screens[place])

    def _frame(self) -> Frame:
        """Return what the agent sees: objects that show in only one of the last two frames, too."""
        if not self._watching:
            return self._nothing
        seen = self.screens[: self._seen]
        grey = cv2.cvtColor(
            seen[0] if len(seen) == 1 else np.maximum(seen[0], seen[1], out=seen[0]), cv2.COLOR_RGB2GRAY
        )
        return np.asarray(cv2.resize(grey, (SIZE, SIZE), interpolation=cv2.INTER_AREA))

    @cached_property
    def _nothing(self) -> Frame:
        return np.zeros((SIZE, SIZE), np.uint8)
