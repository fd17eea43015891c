"""Mutated files against every reader: a one-line refusal, an announced fallback, or the same result."""

import mmap
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzzing import running
from tests.fuzzing.readers import READERS, Reader
from tests.fuzzing.running import Fuzzer, fuzzer


@pytest.fixture(scope="module")
def fuzz() -> Iterator[Fuzzer]:
    with fuzzer() as made:
        yield made


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_no_mutated_file_is_misread(reader: Reader, fuzz: Fuzzer) -> None:
    cases = list(fuzz.run(reader, range(reader.in_suite)))
    assert len(cases) == reader.in_suite
    failed = [str(case) for case in cases if not case.held]
    assert not failed, "\n".join(failed)
    # A reader that refuses everything, or damage that never shows, would test nothing.
    assert len({case.verdict for case in cases}) >= 2


def raise_it(folder: Path, rng: random.Random) -> Any:
    raise KeyError("state")


def hang(folder: Path, rng: random.Random) -> Any:
    time.sleep(60)


def crash(folder: Path, rng: random.Random) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def take_memory(folder: Path, rng: random.Random) -> Any:
    block = mmap.mmap(-1, 6 * 10**8)  # pages of its own: an array may get memory that the process already has
    np.frombuffer(block, np.uint8)[::1024] = 1


def ask_for_memory(folder: Path, rng: random.Random) -> Any:
    return np.zeros(2**40, np.uint8)


def write_elsewhere(folder: Path, rng: random.Random) -> Any:
    (folder.parent / "outside" / "kept").write_text("changed")


def write_beside(folder: Path, rng: random.Random) -> Any:
    Path("marker").mkdir()


def write_here(folder: Path, rng: random.Random) -> Any:
    (folder / "more").touch()


def misread(folder: Path, rng: random.Random) -> Any:
    return "something else"


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (raise_it, "KeyError"),
        (hang, "it takes more than 2 s"),
        (crash, "the process ended with exit code -9"),
        (take_memory, "MB"),
        (ask_for_memory, "MemoryError"),
        (write_elsewhere, "it changes files elsewhere"),
        (write_beside, "it makes"),
        (write_here, "it changes the files that it reads"),
        (misread, "the result has changed, and nothing says so"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_reader_that_does_not_hold_is_found(
    read: Any, why: str, fuzz: Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SECONDS", 2.0)
    # What a manifest says is checked, so that no other result can be what the file says.
    reader = replace(READERS["run"], read=read, targets={"run/checkpoints/*/manifest.json": 1})
    fuzz.undamaged(READERS["run"])
    cases = list(fuzz.run(reader, [7, 8]))
    assert len(cases) == 2
    for case in cases:
        assert case.verdict == "failed"
        assert why in case.why
        assert f"python -m tests.fuzzing --reader run --seed {case.seed}" in str(case)


def test_a_case_is_the_same_every_time(fuzz: Fuzzer) -> None:
    first, second = (list(fuzz.run(READERS["config-json"], range(5))) for _ in range(2))
    assert [(case.what, case.verdict) for case in first] == [(case.what, case.verdict) for case in second]
