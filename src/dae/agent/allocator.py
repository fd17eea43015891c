"""Keep the memory that a training step frees for the next one.

glibc gives large blocks back to the system when they are freed, and every step then waits for thousands of page faults
while it fills new ones: a quarter of the time of an update (docs/performance.md has the figures).
"""

import ctypes
import functools
import os
import platform

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


@functools.cache
def keep_freed_memory() -> bool:
    """Ask glibc, once, to keep freed memory; thresholds set in the environment are respected."""
    chosen = any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"))
    if platform.libc_ver()[0] != "glibc" or chosen or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1) and mallopt(_M_MMAP_THRESHOLD, 2**30))
