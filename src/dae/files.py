"""Reading and writing files: bounded and without surprises, and so that a crash leaves the old content or the new."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def read_file(path: Path, largest: int, *, follow: bool = False) -> bytes:
    """Return the content of a regular file of at most `largest` bytes; an OSError says why it is not one.

    It never waits, as a pipe would make it. With `follow`, for a path that the user has chosen, it goes through links,
    and reads from a pipe that someone writes to.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(path)) from None
        raise
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if follow and stat.S_ISFIFO(about.st_mode):
            os.set_blocking(handle, True)
            return file.read(largest)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if about.st_size > largest:
            raise OSError(errno.EFBIG, f"it has {about.st_size:,} bytes, more than {largest:,}", str(path))
        return file.read(about.st_size)


def write_atomically(target: Path, content: bytes) -> None:
    """Replace a file, or make it; its folder is made if need be."""
    target = target.resolve()  # a link stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_atomically(target, content)


def replace_atomically(target: Path, content: bytes) -> None:
    """Replace a file, or make it, in a folder that is there; a link in its place is replaced, not followed."""
    with replacing(target) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path to write to; the file takes the place of `target` when it is complete, and not after an error."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=target.suffix)
    temporary = Path(name)
    try:
        yield temporary
        os.fsync(handle)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    sync_folder(target.parent)


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def sync_folder(folder: Path) -> None:
    """Make sure that names in a folder reached the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
