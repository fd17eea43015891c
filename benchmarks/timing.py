"""Fair timing on a noisy machine: contenders take turns, and each keeps its best time; tables for the docs."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


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


def in_turns(sides: Mapping[Any, Sequence[object]], *, rounds: int) -> dict[Any, list[list[float]]]:
    """Return what programs answer in each round: `python -m` with these words, each in a process of its own."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    quiet = os.environ | {"TQDM_DISABLE": "1"}
    processes = {
        name: subprocess.Popen([sys.executable, "-m", *map(str, words)], env=quiet, **pipes)
        for name, words in sides.items()
    }
    answers: dict[Any, list[list[float]]] = {name: [] for name in sides}
    for process in processes.values():  # nothing is measured while another one is still starting
        if process.stdout.readline() != _READY:
            raise RuntimeError(f"{' '.join(process.args[1:])} did not start")
    for _ in range(rounds):
        for name, process in processes.items():
            process.stdin.write("\n")
            process.stdin.flush()
            answers[name].append([float(number) for number in process.stdout.readline().split()])
    for process in processes.values():
        process.communicate()
    return answers


def answer(measure: Callable[[], Iterable[float]]) -> None:
    """Be one of the programs of `in_turns`: measure once for each line that comes in."""
    print(_READY, end="", flush=True)
    for _ in sys.stdin:
        print(*measure(), flush=True)


_READY = "ready\n"


def print_row(*cells: object) -> None:
    """Print a row of a table in Markdown."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_header(*names: str) -> None:
    """Print the head of a table in Markdown."""
    print_row(*names)
    print("|" + "---|" * len(names))
