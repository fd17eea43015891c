"""Games in this process, or in one of their own, which is asked for the same things."""

import contextlib
import os
import socket
import subprocess
import sys
import weakref
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from dae.envs.atari.games import Games
from dae.envs.atari.options import AtariOptions
from dae.errors import UserError


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
        # And nothing is imported from the current folder that this process would not import from there.
        command = [sys.executable, "-P", "-m", "dae.envs.atari.server", str(theirs.fileno())]
        path = os.pathsep.join(part or str(Path.cwd()) for part in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,  # signals of the terminal are for this process, which needs the other to save
            )
        self._connection = Connection(ours.detach())
        self._end = weakref.finalize(self, _end, self._connection, self._process)
        self._asked = 0
        self._send((rom, options))

    def ask(self, method: str, *arguments: Any) -> None:
        self._asked += 1
        self._send((self._asked, method, arguments))

    def _send(self, request: tuple[Any, ...]) -> None:
        try:
            self._connection.send(request)
        except OSError as error:
            raise self._ended from error

    def answer(self) -> Any:
        """Return the answer to what was asked last; those before may be there too, if someone was interrupted."""
        number = 0
        try:
            while number < self._asked:
                number, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended from error
        except BaseException:  # an interrupt may have come in the middle of an answer
            self.close()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def _ended(self) -> UserError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)  # for its own exit code
        self.close()
        code = self._process.returncode
        return UserError(
            f"a process of emulators has ended (exit code {code}; -9 for lack of memory or after an interrupt): make "
            "the environments again"
        )

    def close(self) -> None:
        """End the process."""
        self._end()


def _end(connection: Connection, process: "subprocess.Popen[bytes]") -> None:
    connection.close()
    process.kill()  # it has nothing to save, and may be busy
    process.wait()
