"""Games in this process, or in one of their own, which is asked for the same things."""

import os
import socket
import subprocess
import sys
import weakref
from multiprocessing.connection import Connection
from typing import Any, Protocol

from dae.envs.atari.games import Games
from dae.envs.atari.options import AtariOptions


class Asked(Protocol):
    """Games that answer later: `ask` for one of their methods, then `answer` for what it returns."""

    def ask(self, method: str, *arguments: Any) -> None: ...
    def answer(self) -> Any: ...
    def close(self) -> None: ...


class Here:
    """Games of this process."""

    def __init__(self, rom: str, options: AtariOptions) -> None:
        self._games = Games(rom, options)

    def ask(self, method: str, *arguments: Any) -> None:
        self._answer = getattr(self._games, method)(*arguments)

    def answer(self) -> Any:
        return self._answer

    def close(self) -> None:
        """There is nothing to close."""


class Elsewhere:
    """Games of a process of their own, which ends with this one however that ends: it then reads no more."""

    def __init__(self, rom: str, options: AtariOptions) -> None:
        ours, theirs = socket.socketpair()
        # Not `multiprocessing`, which would import the user's program, and run it if it has no `__main__` guard.
        command = [sys.executable, "-m", "dae.envs.atari.server", str(theirs.fileno())]
        path = os.pathsep.join(part for part in sys.path if part)
        with theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": path},
            )
        self._connection = Connection(ours.detach())
        self._end = weakref.finalize(self, _end, self._connection, self._process)
        self._connection.send((rom, options))

    def ask(self, method: str, *arguments: Any) -> None:
        try:
            self._connection.send((method, arguments))
        except OSError as error:
            raise self._ended from error

    def answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def _ended(self) -> RuntimeError:
        return RuntimeError(f"a process of emulators has ended (exit code {self._process.wait()})")

    def close(self) -> None:
        """End the process."""
        self._end()


def _end(connection: Connection, process: "subprocess.Popen[bytes]") -> None:
    connection.close()
    process.wait()
