"""Processes for tests: forks that need not import everything again, and waits that give up."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

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
            self.kill_group()
            raise
        assert self._ended is not None
        return self._ended

    def kill(self) -> None:
        """Kill it, and see that it was still there to be killed."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL, "it had ended before it was killed"

    def kill_group(self) -> None:
        """Kill it and all that it started."""
        os.killpg(self.pid, signal.SIGKILL)


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it has not happened within {seconds:g} s"
        time.sleep(0.01)


def has_checkpoint(folder: RunFolder) -> bool:
    return folder.checkpoints.newest_frames() > 0
