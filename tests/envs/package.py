"""The original `minatar` package, fed from the random streams of our environments so that both play the same game."""

from pathlib import Path
from typing import Any

import numpy as np
from minatar import Environment
from minatar.environments import seaquest

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


# What the package had in Seaquest before version 1.0.13, in place of what it has now.
OLDER_SEAQUEST = {
    "if(self.oxygen<=0):": "if(self.oxygen<0):",
    "0:max(0,self.oxygen)*10//max_oxygen": "0:self.oxygen*10//max_oxygen",
}


def older_seaquest(ramping: bool) -> Any:
    """Return the package's Seaquest with its older rules."""
    source = Path(seaquest.__file__).read_text()
    for now, before in OLDER_SEAQUEST.items():
        assert source.count(now) == 1
        source = source.replace(now, before)
    names: dict[str, Any] = {}
    exec(source, names)
    return names["Env"](ramping=ramping)


class PackageGame:
    """One game of the package that starts where environment `index` of a batch starts."""

    def __init__(self, game: str, words: tuple[int, int], *, sticky: float, ramping: bool, version: str) -> None:
        self.environment = Environment(game, sticky_action_prob=sticky, difficulty_ramping=ramping)
        if (game, version) == ("seaquest", "1.0.10"):
            self.environment.env = older_seaquest(ramping)
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
    game: str, *, n_envs: int, seed: int, sticky: float, ramping: bool, version: str = "1.0.15"
) -> tuple[MinAtarBatch, list[PackageGame]]:
    """Return a batch at its start and the package's games at theirs, fed from the same streams."""
    batch = MinAtarBatch(
        game,
        n_envs,
        seed=seed,
        sticky_action_prob=sticky,
        difficulty_ramping=ramping,
        use_minimal_action_set=False,
        version=version,
    )
    # The batch has drawn its first episode already; the package's games start with the whole stream.
    words = [tuple(int(w) for w in pair) for pair in zip(*random_streams([seed], np.arange(n_envs)), strict=True)]
    return batch, [PackageGame(game, pair, sticky=sticky, ramping=ramping, version=version) for pair in words]
