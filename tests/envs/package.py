"""The original `minatar` package, fed from the random streams of our environments so that both play the same game."""

from typing import Any

import numpy as np
from minatar import Environment

from dae.envs.minatar.batch import MinAtarBatch
from dae.envs.minatar.rng import random_streams

_MASK = 2**64 - 1


class Stream:
    """xoroshiro128++ in plain Python, with the methods of numpy's RandomState that the package calls."""

    def __init__(self, words: tuple[int, int]) -> None:
        self.words = words

    def _uniform(self) -> float:
        def rotate(x: int, bits: int) -> int:
            return ((x << bits) | (x >> (64 - bits))) & _MASK

        a, b = self.words
        result = (rotate((a + b) & _MASK, 17) + a) & _MASK
        b ^= a
        self.words = rotate(a, 49) ^ b ^ ((b << 21) & _MASK), rotate(b, 28)
        return (result >> 11) * 2.0**-53

    def rand(self, size: int | None = None) -> Any:
        return self._uniform() if size is None else np.array([self._uniform() for _ in range(size)])

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        low, high = (0, low) if high is None else (low, high)
        if size is None:
            return low + int(self._uniform() * (high - low))
        return np.array([low + int(self._uniform() * (high - low)) for _ in range(size)])


class NoDraw:
    """A coin that never sticks: with sticky actions off our games draw none, while the package throws one away."""

    def rand(self) -> float:
        return 1.0


class PackageGame:
    """One game of the package that starts where environment `index` of a batch starts."""

    def __init__(self, game: str, words: tuple[int, int], *, sticky: float, ramping: bool) -> None:
        self.environment = Environment(game, sticky_action_prob=sticky, difficulty_ramping=ramping)
        self.stream = Stream(words)
        self.environment.random = self.stream if sticky > 0 else NoDraw()
        self.environment.env.random = self.stream
        self.environment.reset()

    @property
    def game(self) -> Any:
        return self.environment.env

    def observation(self) -> np.ndarray:
        return np.moveaxis(self.environment.state(), -1, 0)

    def act(self, action: int) -> tuple[float, bool]:
        reward, terminal = self.environment.act(action)
        return float(reward), bool(terminal)


def side_by_side(
    game: str, *, n_envs: int, seed: int, sticky: float, ramping: bool
) -> tuple[MinAtarBatch, list[PackageGame]]:
    """Return a batch at its start and the package's games at theirs, fed from the same streams."""
    batch = MinAtarBatch(
        game,
        n_envs,
        seed=seed,
        sticky_action_prob=sticky,
        difficulty_ramping=ramping,
        use_minimal_action_set=False,
    )
    # The batch has drawn its first episode already; the package's games start with the whole stream.
    words = [tuple(int(w) for w in pair) for pair in zip(*random_streams([seed], np.arange(n_envs)), strict=True)]
    return batch, [PackageGame(game, pair, sticky=sticky, ramping=ramping) for pair in words]
