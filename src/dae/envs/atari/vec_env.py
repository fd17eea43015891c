"""Atari games as the VecEnv that Stable-Baselines3 expects: stacked frames, signs of rewards, scores of whole games."""

import itertools
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn
from tqdm import tqdm  # type: ignore[import-untyped]

from dae.envs.atari.game import N_STACK, SIZE, End, Progress
from dae.envs.atari.games import Steps
from dae.envs.atari.options import AtariOptions
from dae.envs.atari.processes import Asked, Elsewhere, Here
from dae.envs.atari.states import read, written
from dae.envs.sb3 import SharedVecEnv
from dae.errors import InvalidValue
from dae.rules import NATURAL, require

_AT_ONCE = 8  # games that a process makes or restores before progress is shown
_QUIET_SECONDS = 2  # before it is shown at all


class AtariVecEnv(SharedVecEnv):
    """Games that step together, shared by processes of which each has a core.

    An observation is the last four frames, without those from before the loss of a life. Where a life or a game ends,
    `done` is True; only where a game ends, the info has `episode`, with the score of the whole game. `raw_reward` is
    there where the game gave a reward.
    """

    n_stack = N_STACK

    def __init__(self, rom: str, options: AtariOptions, n_envs: int, seed: int | None = None) -> None:
        if seed is not None:
            require("seed", seed, NATURAL)
        # Pictures are drawn from games of this process.
        processes = 1 if options.render_mode else min(options.n_processes or torch.get_num_threads(), n_envs)
        bounds = np.linspace(0, n_envs, processes + 1).astype(int).tolist()
        self._slices = [slice(*ends) for ends in itertools.pairwise(bounds)]
        self._clip_reward = options.clip_reward
        self._stacks = np.zeros((n_envs, self.n_stack, SIZE, SIZE), np.uint8)
        self._parts: list[Asked] = []
        try:
            self._parts += [(Here if processes == 1 else Elsewhere)(rom, options) for _ in self._slices]
            self._in_turns("starting emulators", lambda part, first, count: part.ask("add", count))
            self._parts[0].ask("action_names")
            self.action_names: list[str] = self._parts[0].answer()
        except BaseException:
            self.close()
            raise
        seen = spaces.Box(0, 255, self._stacks.shape[1:], np.uint8)
        super().__init__(n_envs, seen, spaces.Discrete(len(self.action_names)), options.render_mode)
        self._next_seed = secrets.randbits(32) if seed is None else seed

    def _in_turns(self, what: str, ask: Callable[[Asked, int, int], None]) -> None:
        """Ask all parts for a few games at a time, and show progress if it takes long."""
        pause = 0.1 if sys.stderr.isatty() else 30  # a file gets few lines
        with tqdm(
            total=len(self._stacks), desc=what, unit="game", delay=_QUIET_SECONDS, mininterval=pause, leave=False
        ) as bar:
            for at in range(0, max(part.stop - part.start for part in self._slices), _AT_ONCE):
                counts = [max(0, min(_AT_ONCE, of.stop - of.start - at)) for of in self._slices]
                for part, count in zip(self._parts, counts, strict=True):
                    ask(part, at, count)
                self._answers()
                bar.update(sum(counts))

    def _answers(self) -> list[Any]:
        """Return what all parts answer; if one cannot, after the others have, so that the next answers are the next."""
        answers, failures = [], []
        for part in self._parts:
            try:
                answers.append(part.answer())
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return answers

    def reset(self) -> VecEnvObs:
        """Begin a new game in all environments: the first of a seed that was given, or the next."""
        seed, self._next_seed = self._next_seed, None
        self.reset_infos = [{} for _ in range(self.num_envs)]
        for part, of in zip(self._parts, self._slices, strict=True):
            part.ask("start", None if seed is None else [(seed, i) for i in range(of.start, of.stop)])
        self._stacks = np.zeros_like(self._stacks)
        self._stacks[:, -1] = np.concatenate(self._answers())
        return self._stacks

    def step_async(self, actions: NDArray[Any]) -> None:
        if not self._parts:
            raise InvalidValue("the environments are closed: make new ones")
        actions = np.asarray(actions)
        integers = actions.shape == (self.num_envs,) and np.issubdtype(actions.dtype, np.integer)
        if not integers or actions.min() < 0 or actions.max() >= len(self.action_names):
            raise InvalidValue(
                f"actions are {actions!r}: they must be {self.num_envs} integers in [0, {len(self.action_names)})"
            )
        for part, of in zip(self._parts, self._slices, strict=True):
            part.ask("step", actions[of])

    def step_wait(self) -> VecEnvStepReturn:
        parts: list[Steps] = self._answers()
        ends, rewards = np.concatenate([part.ends for part in parts]), np.concatenate([part.rewards for part in parts])
        stacks = np.empty_like(self._stacks)  # not in place: who has the last observations may keep them
        stacks[:, :-1] = self._stacks[:, 1:]
        stacks[:, -1] = np.concatenate([part.frames for part in parts])
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(rewards).tolist():
            infos[i]["raw_reward"] = float(rewards[i])
        ended = np.flatnonzero(ends)
        for i, (last_frame, score, length) in zip(
            ended.tolist(), (end for part in parts for end in part.ended), strict=True
        ):
            infos[i]["terminal_observation"] = np.concatenate((stacks[i, :-1], last_frame[None]))
            infos[i]["TimeLimit.truncated"] = bool(ends[i] == End.TRUNCATED)
            if score is not None:
                infos[i]["episode"] = {"r": score, "l": length, "t": self._clock()}
        stacks[ended, :-1] = 0
        self._stacks = stacks
        return stacks, np.sign(rewards) if self._clip_reward else rewards, ends > 0, infos

    # Snapshots and states hold the actions of the games that are on, from which the games follow. ------------------

    def take_snapshot(self) -> bytes:
        """Return what it takes to bring the games to where they are."""
        return written(self._progress(), self._stacks)

    def restore_snapshot(self, snapshot: bytes) -> VecEnvObs:
        """Play the games of a snapshot again, and return the observations in it."""
        self.reset()
        games, stacks = read(snapshot, self.num_envs)

        def ask(part: Asked, first: int, count: int) -> None:
            begin = self._slices[self._parts.index(part)].start + first
            chosen = slice(begin, begin + count)
            part.ask("put", range(first, first + count), games[chosen], stacks[chosen, -1])

        self._in_turns("playing games up to where they were", ask)
        self._stacks = stacks
        return self._stacks

    def take_states(self, indices: Sequence[int]) -> list[bytes]:
        """Return for each of some games what it takes to bring any game of this kind to where it is."""
        games = self._progress()
        return [written([games[i]], self._stacks[[i]]) for i in indices]

    def put_states(
        self, states: Sequence[bytes], indices: Sequence[int], seeds: Sequence[int] | None = None
    ) -> VecEnvObs:
        """Bring games to states: by playing their actions again, or, the next time, from the memory of the process.

        A game that was given a seed has no state to take until it is over: the seed is not in its actions.
        """
        each = [read(state, 1) for state in states]
        games, stacks = [game for (game,), _ in each], np.concatenate([stack for _, stack in each])
        for part, of in zip(self._parts, self._slices, strict=True):
            here = [k for k, i in enumerate(indices) if of.start <= i < of.stop]
            part.ask(
                "put",
                [indices[k] - of.start for k in here],
                [games[k] for k in here],
                stacks[here, -1],
                None if seeds is None else [seeds[k] for k in here],
            )
        self._answers()
        self._stacks = self._stacks.copy()  # who has the last observations may keep them
        self._stacks[list(indices)] = stacks
        return stacks

    def _progress(self) -> list[Progress | None]:
        for part in self._parts:
            part.ask("progress")
        return list(itertools.chain.from_iterable(self._answers()))

    # -----------------------------------------------------------------------------------------------------------------

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        if self.render_mode is None:
            return [None] * self.num_envs
        self._parts[0].ask("screens")
        screens: list[NDArray[np.uint8] | None] = self._parts[0].answer()
        return screens

    @property
    def last_screen(self) -> NDArray[np.uint8] | None:
        """What the first game showed when the one before it ended, if games are drawn."""
        self._parts[0].ask("last_screen")
        screen: NDArray[np.uint8] | None = self._parts[0].answer()
        return screen

    def close(self) -> None:
        """End the processes of the emulators."""
        for part in self._parts:
            part.close()
        self._parts = []
