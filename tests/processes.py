"""Processes for tests: forks that need not import everything again, and waits that give up."""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from dae.runs import RunFolder


class Fork:
    """A function in a process of its own, with its output in a file."""

    def __init__(self, what: Callable[[], int], log: Path = Path(os.devnull)) -> None:
        self._ended: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.setsid()
                torch.set_num_threads(1)  # threads of OpenMP do not survive a fork: waiting for them would not end
                sys.stdout = sys.stderr = log.open("a", buffering=1)
                os.dup2(sys.stdout.fileno(), 1)
                os.dup2(sys.stdout.fileno(), 2)
                code = what()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)

    def exit_code(self) -> int | None:
        if self._ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._ended = os.waitstatus_to_exitcode(status) if pid else None
        return self._ended

    def wait(self, seconds: float = 120) -> int:
        try:
            wait_until(lambda: self.exit_code() is not None, seconds)
        except AssertionError:
            kill_with_descendants(self.pid)
            raise
        assert self._ended is not None
        return self._ended

    def kill(self) -> None:
        """Kill it, and see that it was still there to be killed."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL, "it had ended before it was killed"


def kill_with_descendants(pid: int) -> None:
    """Kill a process and all that it started, in whatever sessions these are."""
    parent_of = parents()
    doomed = [pid]
    for ancestor in doomed:  # which grows
        doomed += [child for child, parent in parent_of.items() if parent == ancestor]
    for each in doomed:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            found[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    return found


def users_of(folder: str) -> list[int]:
    """The processes that have files open below a folder, even if these are deleted by now."""
    found = []
    for handles in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # it has just ended, or is someone else's
            if any(str(handle.readlink()).startswith(f"{folder}/") for handle in handles.iterdir()):
                found.append(int(handles.parent.name))
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it has not happened within {seconds:g} s"
        time.sleep(0.01)


def has_checkpoint(folder: RunFolder) -> bool:
    return folder.checkpoints.newest_frames() > 0
