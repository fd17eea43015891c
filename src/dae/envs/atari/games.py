"""Games that step together in this process."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dae.envs.atari.game import SIZE, Clone, End, Frame, Game, Progress, spoken
from dae.envs.atari.options import AtariOptions

_CLONES = 1024  # games that a process keeps in memory after they were played again: some 20 KB each


@dataclass
class Steps:
    """A step of some games."""

    frames: NDArray[np.uint8]  # (n, 84, 84)
    rewards: NDArray[np.float32]  # of the game
    ends: NDArray[np.uint8]
    # Of each game in which something ended: its last frame, and score (None: not the game, but a life) and length.
    ended: list[tuple[Frame, float | None, int]]


class Games:
    """Games of this process."""

    def __init__(self, rom: str, options: AtariOptions) -> None:
        self._rom, self._options = rom, options
        self._games: list[Game] = []
        self._clones: dict[tuple[Progress, bytes], Clone] = {}  # the one that was used last is the last
        self._most_clones = 0 if options.render_mode else _CLONES  # they have no pictures to draw

    def add(self, count: int) -> None:
        """Make more games."""
        for _ in range(count):
            shared = self._games[0].screens if self._games else None  # so that it stays in the cache
            self._games.append(Game(self._rom, self._options, shared))

    def start(self, seeds: list[tuple[int, int]] | None) -> NDArray[np.uint8]:
        """Begin the first games of these seeds, or the next ones; return their first frames."""
        of_each = [None] * len(self._games) if seeds is None else seeds
        return np.stack([game.start(seed) for game, seed in zip(self._games, of_each, strict=True)])

    def step(self, actions: NDArray[np.int64]) -> Steps:
        """Let the agent act in all games."""
        n = len(self._games)
        frames, rewards, ends = np.empty((n, SIZE, SIZE), np.uint8), np.empty(n, np.float32), np.zeros(n, np.uint8)
        steps = Steps(frames, rewards, ends, [])
        for i, (game, action) in enumerate(zip(self._games, actions.tolist(), strict=True)):
            outcome = game.step(action)
            frames[i], rewards[i], ends[i] = outcome.frame, outcome.reward, outcome.end
            if outcome.end is not End.NOT:
                assert outcome.last_frame is not None
                steps.ended.append((outcome.last_frame, outcome.score, outcome.length))
        return steps

    def progress(self) -> list[Progress | None]:
        """Return where the games are."""
        return [game.progress() for game in self._games]

    def put(
        self,
        places: Sequence[int],
        progress: Sequence[Progress],
        frames: Sequence[Frame],
        seeds: Sequence[int] | None = None,
    ) -> None:
        """Bring games to where they or others were, and showed these frames; seeds are for what follows."""
        for k, (place, to, frame) in enumerate(zip(places, progress, frames, strict=True)):
            game, key = self._games[place], (to, frame.tobytes())
            clone = self._clones.pop(key, None)
            if clone is None:
                game.replay(to, frame, self._on_the_way(to))
                clone = game.clone()
            else:
                game.become(clone)
            self._clones[key] = clone
            if len(self._clones) > self._most_clones:
                del self._clones[next(iter(self._clones))]
            if seeds is not None:
                game.reseed(seeds[k])

    def _on_the_way(self, to: Progress) -> Clone | None:
        """Return the last moment of a game, before this one, that is in memory: states often come in order."""
        earlier = [
            (len(known.actions), clone)
            for (known, _), clone in self._clones.items()
            if (known.seed, known.number) == (to.seed, to.number)
            and len(known.actions) < len(to.actions)
            and to.actions.startswith(known.actions)
        ]
        return max(earlier, key=lambda found: found[0])[1] if earlier else None

    def action_names(self) -> list[str]:
        """Return what the actions are called."""
        return [spoken(action.name) for action in self._games[0].action_set]

    def last_screen(self) -> NDArray[np.uint8] | None:
        """Return what the first game showed when the one before it ended."""
        return self._games[0].last_screen

    def screens(self) -> list[NDArray[np.uint8]]:
        """Return what is on the screens."""
        return [game.screen() for game in self._games]
