"""What stands behind a result: versions, source and machine."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


def made_with() -> dict[str, Any]:
    """Return what a result was made with."""
    packages = ("dae-rl", "torch", "numpy", "gymnasium", "stable-baselines3", "numba")
    return {
        "versions": {name: version(name) for name in packages} | {"python": platform.python_version()},
        "git_commit": _git_commit(),
        "threads": torch.get_num_threads(),
        "machine": platform.platform(),
        "cpus": os.cpu_count(),
    }


def _git_commit() -> str | None:
    """Return the commit of this package's source, if it lies in a git repository."""
    source = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
