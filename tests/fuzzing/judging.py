"""Whether a reader held: refused in one line, announced, the same, or, where nothing could tell, what the file says."""

import errno
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from dae.errors import UserError
from tests.fuzzing.mutations import Mutated
from tests.fuzzing.readers import Exited, Reader

VERDICTS = ("refused", "announced", "same", "own numbers", "failed")
LONGEST_LINE = 1_500
# What may come before a refusal, or be said by an undamaged run.
_ASIDES = ("dae: preparing", "dae: ready after")
_ANNOUNCEMENTS = ("cannot be used (", "the run began with", "cannot be restored exactly", "the pictures could not")


class Ran(NamedTuple):
    """What a reader did."""

    result: Any  # what there is to compare; None after an error
    error: BaseException | None
    out: str
    err: str


class Verdict(NamedTuple):
    """How a case ended, and why."""

    verdict: str
    why: str = ""


def judge(reader: Reader, ran: Ran, undamaged: Any, path: str, mutated: Mutated) -> Verdict:
    """Return the verdict on a reader that was given a mutated file."""
    lines = [line for line in ran.err.splitlines() if not line.startswith(_ASIDES)]
    for line in [*lines, *ran.out.splitlines()]:
        if not line.isprintable():
            return Verdict("failed", f"prints control characters: {line[:200]!r}")
        if len(line) > LONGEST_LINE:
            return Verdict("failed", f"prints a line of {len(line):,} characters: {line[:200]}")
    strange = [line for line in lines if not line.startswith("dae: ")]
    if ran.error is not None and not isinstance(ran.error, Exited | UserError) and not _of_the_system(ran.error):
        return Verdict("failed", where(ran.error))
    if strange:
        return Verdict("failed", f"prints to stderr: {strange[0][:300]}")
    if isinstance(ran.error, Exited):
        refusals = [line for line in lines if not any(words in line for words in _ANNOUNCEMENTS)]
        if len(refusals) != 1:
            return Verdict("failed", f"exit code {ran.error.code} with {len(refusals)} lines: {refusals[:3]}")
        return _refused(refusals[0])
    if ran.error is not None:
        return _refused(str(ran.error))
    told = [line for line in [*lines, *ran.out.splitlines()] if line.startswith(("dae: ", reader.announces))]
    if told or reader.announces in ran.out:
        return Verdict("announced", told[0] if told else "")
    if ran.result == undamaged:
        return Verdict("same")
    lost = path.endswith("monitor.csv") and mutated.name.startswith(reader.noticed) if reader.noticed else False
    if (mutated.may_differ or reader.lists) and not lost:
        return Verdict("own numbers")
    return Verdict("failed", "the result has changed, and nothing says so")


def _of_the_system(error: BaseException) -> bool:
    """Say whether it is an error that the system reports, as for a file that is not there."""
    return isinstance(error, FileNotFoundError) or (
        isinstance(error, OSError) and error.errno not in (None, errno.ENOMEM)
    )


def _refused(line: str) -> Verdict:
    if len(line.splitlines()) != 1 or not line.isprintable():
        return Verdict("failed", f"the refusal is not one line of text: {line[:200]!r}")
    if len(line) > LONGEST_LINE:
        return Verdict("failed", f"the refusal has {len(line):,} characters: {line[:200]}")
    if any(words in line for words in ("MemoryError", "nable to allocate", "allocate memory", "too large to be")):
        return Verdict("failed", f"memory is asked for before it is known to be needed: {line[:300]}")
    return Verdict("refused", line)


def where(error: BaseException) -> str:
    """Return the last line of a traceback, and the last places in the package that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames if "/src/dae/" in f.filename]
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text} (at {' > '.join(own[-3:]) or 'the reader'})"
