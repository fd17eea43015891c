"""Output that never stops the work: to a pipe or a terminal that was closed, and in any locale."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_GONE = (errno.EPIPE, errno.EIO, errno.ENXIO)  # nobody reads the pipe; the terminal was closed


class _Lasting:
    """A stream that drops what is written to it once nobody can read it any more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._dropped_if_gone():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropped_if_gone():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropped_if_gone(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())  # what is still in the buffer goes there too
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """While in force, nobody has to read the output, and it is UTF-8 whatever the locale."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = (_Lasting(stream or nowhere) for stream in before)  # a closed one is None
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stdout, sys.stderr = before
