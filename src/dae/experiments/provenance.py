"""What a result was made with: versions, source and machine."""

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import dae
from dae.runs import Provenance

_PACKAGES = ("dae-rl", "torch", "numpy", "gymnasium", "stable-baselines3", "numba", "ale-py")


def made_with() -> Provenance:
    """Return what a result was made with."""
    commit, uncommitted_changes = git_state(Path(dae.__file__).parent)
    return Provenance(
        versions=dict(_versions()),
        git_commit=commit,
        uncommitted_changes=uncommitted_changes,
        threads=torch.get_num_threads(),
        machine=platform.platform(),
        cpus=os.cpu_count(),
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):  # of an extra
            yield name, version(name)
    yield "python", platform.python_version()


def git_state(package: Path) -> tuple[str | None, bool | None]:
    """Return the commit of the package's own repository, and whether the source has uncommitted changes.

    A package that was installed below another repository (in its virtual environment, say) has neither: only a
    repository that holds the package at src/dae is its own.
    """
    try:
        top = Path(_git(package, "rev-parse", "--show-toplevel"))
        if top.resolve() / "src" / "dae" != package.resolve():
            return None, None
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changes = _git(top, "status", "--porcelain", "--", "src", "pyproject.toml")
        return _git(top, "rev-parse", "HEAD"), bool(changes)
    except (OSError, subprocess.SubprocessError):
        return None, None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    elsewhere = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # GIT_DIR, say
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10, env=elsewhere).stdout.strip()
