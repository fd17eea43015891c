"""Running cases: seeded, and in forked processes, so that what hangs or crashes is one case and not the end."""

import contextlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzzing.judging import Ran, Verdict, judge
from tests.fuzzing.mutations import Mutated, mutate
from tests.fuzzing.originals import make_originals
from tests.fuzzing.readers import Reader
from tests.processes import Fork

SECONDS = 20.0  # a case that takes longer hangs
MEMORY = 500 * 2**20  # bytes that a case may take
_ADDRESSES = 3 * 2**30  # of memory that a case may ask for; more than it may take, because threads reserve a lot
BATCH = 25  # cases of a process


class TookTooLong(BaseException):
    """The alarm rang. Not an Exception, so that no reader reports it as damage."""


@dataclass(frozen=True)
class Case:
    """A mutated file, what read it, and how that went."""

    reader: str
    seed: int
    what: str
    verdict: str
    why: str
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        return self.verdict != "failed"

    def __str__(self) -> str:
        return (
            f"{self.reader}, seed {self.seed}: {self.what}: {self.verdict}{f': {self.why}' if self.why else ''}\n"
            f"    python -m tests.fuzzing --reader {self.reader} --seed {self.seed}"
        )


class Fuzzer:
    """The undamaged files, what readers make of them, and a place for mutated ones."""

    def __init__(self, folder: Path) -> None:
        self._originals, self._scratch = folder / "originals", folder / "scratch"
        self._originals.mkdir()
        if Fork(lambda: make_originals(self._originals) or 0, folder / "log").wait(300):
            raise RuntimeError((folder / "log").read_text())
        self._undamaged: dict[str, Any] = {}

    def undamaged(self, reader: Reader) -> Any:
        """Return what a reader makes of the files as they are."""
        if reader.name not in self._undamaged:
            answer = self._scratch.with_name(f"undamaged-{reader.name}")

            def read() -> int:
                with _limited():
                    ran = _read(reader, self._copied(reader), random.Random(0))
                if ran.error is not None:
                    raise ran.error
                if reader.announces in ran.out:
                    raise RuntimeError(f"{reader.name} announces something of undamaged files: {ran.out}")
                answer.write_bytes(pickle.dumps(ran.result))
                return 0

            log = self._scratch.with_name("log")
            if Fork(read, log).wait(120):
                raise RuntimeError(log.read_text())
            self._undamaged[reader.name] = pickle.loads(answer.read_bytes())
        return self._undamaged[reader.name]

    def run(self, reader: Reader, seeds: Sequence[int]) -> Iterator[Case]:
        """Run cases, some of them in each process; one that ends its process is told apart from the others."""
        undamaged = self.undamaged(reader)
        left = list(seeds)
        while left:
            batch = left[:BATCH]
            notes = self._scratch.with_name("notes")
            notes.write_text("")
            log = self._scratch.with_name("log")
            log.write_text("")
            process = Fork(partial(self._run_batch, reader, batch, undamaged, notes), log)
            ended = ""
            try:
                code = process.wait((SECONDS + 5) * len(batch))
                ended = f"the process ended with exit code {code}: {log.read_text()[-300:]}" if code else ""
            except AssertionError:
                ended = "the process hangs, and no signal reaches it"
            cases = [Case(**json.loads(line)) for line in notes.read_text().splitlines()]
            told = [case for case in cases if case.verdict != "begun"]
            yield from told
            left = left[len(told) :]
            if ended and left:
                begun = cases[-1] if cases and cases[-1].verdict == "begun" else Case(reader.name, left[0], "?", "", "")
                yield Case(reader.name, left[0], begun.what, "failed", ended)
                left = left[1:]

    def _run_batch(self, reader: Reader, seeds: list[int], undamaged: Any, notes: Path) -> int:
        os.fsync = lambda handle: None  # type: ignore[assignment]
        with notes.open("a", buffering=1) as file:

            def note(case: Case) -> None:
                file.write(json.dumps(vars(case)) + "\n")

            for seed in seeds:
                note(self.run_case(reader, seed, undamaged, note))
        return 0

    def run_case(
        self, reader: Reader, seed: int, undamaged: Any, note: Callable[[Case], None] = lambda case: None
    ) -> Case:
        """Mutate one file, let the reader read it, and judge."""
        rng = random.Random(f"{reader.name} {seed}")
        work = self._copied(reader)
        path, mutated = self._mutate(reader, rng, work)
        what = f"{path} {mutated.name}"
        note(Case(reader.name, seed, what, "begun", ""))
        before = _state_of(work) if reader.only_reads else None
        elsewhere = _contents_of(self._outside)
        began = time.monotonic()
        with _limited() as memory:
            ran = _read(reader, work, rng)
        seconds = time.monotonic() - began
        verdict = judge(reader, ran, undamaged, path, mutated)
        for problem in (
            memory(),
            "" if before is None or before == _state_of(work) else "it changes the files that it reads",
            "" if elsewhere == _contents_of(self._outside) else "it changes files elsewhere",
            "" if self._strays() <= {"outside", "work", "written"} else f"it makes {sorted(self._strays())}",
        ):
            if problem:
                verdict = Verdict("failed", problem)
        return Case(reader.name, seed, what, *verdict, seconds)

    @property
    def _outside(self) -> Path:
        return self._scratch / "outside"

    def _strays(self) -> set[str]:
        return {path.name for path in self._scratch.iterdir()}

    def _copied(self, reader: Reader) -> Path:
        """Return a fresh copy of a reader's files, beside a folder that no one may change."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._outside.mkdir(parents=True)
        (self._outside / "kept").write_text("mine")
        os.chdir(self._scratch)
        return Path(shutil.copytree(self._originals / reader.original, self._scratch / "work"))

    def _mutate(self, reader: Reader, rng: random.Random, work: Path) -> tuple[str, Mutated]:
        pattern = rng.choices(list(reader.targets), list(reader.targets.values()))[0]
        places = sorted(work.glob(pattern))
        if not places:  # a file that only a run in progress has, such as its lock
            (work / pattern).write_bytes(b"process 1")
            places = [work / pattern]
        path = places[-1] if rng.random() < 0.7 else rng.choice(places)
        checked = "checkpoints" in path.parts
        marker = self._scratch / "marker"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's, about names that are there twice
            mutated = mutate(rng, path, self._outside, marker, checked=checked)
        if checked and rng.random() < 0.15:  # so that there is none to fall back to
            for other in sorted(work.glob("run/checkpoints/*"))[:-1]:
                shutil.rmtree(other) if other.is_dir() and not other.is_symlink() else other.unlink()
        return str(path.relative_to(work)), mutated


def _read(reader: Reader, work: Path, rng: random.Random) -> Ran:
    """Let a reader read, with its output kept as a terminal would take it."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True)
    result, problem = None, None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            result = reader.read(work, rng)
        except BaseException as error:
            problem = error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    texts = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Ran(result, problem, *texts)


def _ring(*_: object) -> None:
    raise TookTooLong(f"it takes more than {SECONDS:g} s")


@contextlib.contextmanager
def _limited() -> Iterator[Callable[[], str]]:
    """Bound the memory that can be asked for; yields a function that says whether too much was taken."""
    clear, statm = Path("/proc/self/clear_refs"), Path("/proc/self/statm")
    with contextlib.suppress(OSError):
        clear.write_text("5")  # forget the peak
    size, resident = (int(pages) * resource.getpagesize() for pages in statm.read_text().split()[:2])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + _ADDRESSES, before[1]))

    def too_much() -> str:
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
        return f"it takes {(peak - resident) / 2**20:,.0f} MB" if peak - resident > MEMORY else ""

    try:
        yield too_much
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _state_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What shows that something in a folder was written; sparse giants are not read."""
    stats = {str(path.relative_to(folder)): path.lstat() for path in [folder, *folder.rglob("*")]}
    return {name: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def _contents_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def fuzzer() -> Iterator[Fuzzer]:
    """Make the files in a temporary folder."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dae-fuzzing-") as folder:
        try:
            yield Fuzzer(Path(folder))
        finally:
            os.chdir(here)
            sys.stdout.flush()
