"""A terminal for tests: a process that writes to one, and what is on its screen in the end."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
import traceback
from collections.abc import Callable

import torch

from tests.processes import kill_with_descendants

_PIECES = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|\x1b.|[\r\n\x03]|[^\x1b\r\n\x03]+")


class Terminal:
    """A function in a process of its own, forked, whose input and output are a terminal."""

    def __init__(self, what: Callable[[], int], *, width: int = 80) -> None:
        self.shown = ""
        self.pid, self._keyboard = pty.fork()
        if self.pid == 0:
            code = 70
            try:
                torch.set_num_threads(1)  # threads of OpenMP do not survive a fork: waiting for them would not end
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
                os.environ["TERM"] = "xterm"
                os.environ.pop("COLUMNS", None)
                sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
                sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
                code = what()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)

    def read_until(self, wanted: str | None, seconds: float = 60) -> None:
        """Read what is written until a text was among it; without one, to the end."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError):  # the process has ended
            while wanted is None or wanted not in self.shown:
                ready, _, _ = select.select([self._keyboard], [], [], max(0, deadline - time.monotonic()))
                if not ready:
                    kill_with_descendants(self.pid)
                    raise AssertionError(f"{wanted!r} has not been shown within {seconds:g} s: {self.shown!r}")
                self.shown += os.read(self._keyboard, 65536).decode()

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def wait(self) -> int:
        self.read_until(None)
        os.close(self._keyboard)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def screen(self) -> list[str]:
        """The lines that can be seen, without empty ones."""
        lines, row, column = [""], 0, 0
        for piece in _PIECES.finditer(self.shown):
            text, (number, command) = piece.group(), piece.groups()
            if text == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif text == "\r":
                column = 0
            elif command == "A":
                row -= int(number or 1)
            elif command == "K":
                lines[row] = "" if number == "2" else lines[row][:column]
            elif text[0] >= " ":
                lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
                column += len(text)
        return [line.rstrip() for line in lines if line.strip()]
