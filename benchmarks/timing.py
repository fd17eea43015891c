"""Fair timing on a noisy machine: contenders take turns, and each keeps its best time."""

import time
from collections.abc import Callable, Mapping


def best_seconds(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int = 7, seconds: float = 0.05, patience: float = 2.0
) -> dict[str, float]:
    """Return the best time a call of each contender, in seconds.

    A round gives every contender about `seconds`, one after the other, so that a slow spell of the machine meets all.
    One that has used up `patience` seconds sits out.
    """
    repeats = {}
    for name, call in contenders.items():
        call()
        repeats[name] = max(1, int(seconds / max(_time(call, 1), 1e-9)))
    best, spent = dict.fromkeys(contenders, float("inf")), dict.fromkeys(contenders, 0.0)
    for _ in range(rounds):
        for name, call in contenders.items():
            if spent[name] < patience:
                took = _time(call, repeats[name])
                best[name] = min(best[name], took)
                spent[name] += took * repeats[name]
    return best


def _time(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
