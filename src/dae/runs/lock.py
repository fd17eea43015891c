"""The lock of a run's folder: one process at a time writes to it."""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from dae.errors import InUse, UserError

# Processes that check whether a folder is in use hold its lock for a moment.
_SECONDS_FOR_A_LOOK = 0.5
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # do not go through a link, and do not wait for a pipe


class FolderLost(UserError):
    """The folder of a run is no longer its own: nothing may be written to it any more."""


class FolderLock:
    """A locked file in a folder; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "lock"
        self._handle: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out."""
        try:
            self._handle = self._take()
            yield
        finally:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def keep(self) -> None:
        """While the lock is held: put a deleted one back, unless the folder is gone or another process has it now."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._handle), self.path.lstat()):
                return
        lost = self._handle
        try:
            self._handle = self._take()
        except FileNotFoundError as error:
            raise FolderLost(f"{self.folder} was deleted or moved while this run wrote to it") from error
        except InUse as error:
            raise FolderLost(
                f"the lock of {self.folder} was deleted while this run wrote to it, and another process has it now"
            ) from error
        os.close(lost)

    def is_taken(self) -> bool | None:
        """Say whether a process is at work in the folder; None if the lock cannot be read."""
        try:
            handle = os.open(self.path, os.O_RDONLY | _PLAIN)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return None
        try:
            return not _locks(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)

    def _take(self) -> int:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as error:
            raise UserError(f"{self.path} is not a lock that a run has made: delete it") from error
        try:
            deadline = time.monotonic() + _SECONDS_FOR_A_LOOK
            while not _locks(handle, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    owner = os.pread(handle, 100, 0).decode(errors="replace").strip()
                    raise InUse(
                        f"{self.folder} is in use by another process ({owner or 'unknown'}); wait for it, stop it, or "
                        "choose another folder"
                    )
                time.sleep(0.01)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        except BaseException:
            os.close(handle)
            raise
        return handle


def _locks(handle: int, kind: int) -> bool:
    """Take a lock, if it is free; it is released when the file is closed."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
