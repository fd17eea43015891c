"""Writing files so that a crash or a full disk leaves the old content or the new, never something between."""

import os
import tempfile
from pathlib import Path


def write_atomically(target: Path, content: bytes) -> None:
    """Replace a file, or make it; its folder is made if need be."""
    target = target.resolve()  # a link stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
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
