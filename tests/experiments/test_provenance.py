"""What a result says about the program that made it is true."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import dae
from dae.experiments.provenance import git_state, made_with

IDENTITY = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | IDENTITY).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that holds the package at src/dae."""
    package = tmp_path / "dae-rl" / "src" / "dae"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "dae-rl" / "pyproject.toml").write_text("")
    git(tmp_path / "dae-rl", "init", "-q")
    git(tmp_path / "dae-rl", "add", "-A")
    git(tmp_path / "dae-rl", "commit", "-qm", "first")
    return tmp_path / "dae-rl"


def test_the_commit_of_the_packages_own_repository_is_recorded(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    package = repository / "src" / "dae"
    assert git_state(package) == (commit, False)
    (repository / "notes.txt").write_text("not part of the program")
    assert git_state(package) == (commit, False)
    (package / "new.py").write_text("")
    assert git_state(package) == (commit, True), "a new file is a change"
    (package / "new.py").unlink()
    (package / "__init__.py").write_text("x = 1\n")
    assert git_state(package) == (commit, True)


def test_a_repository_that_git_is_pointed_at_is_not_meant(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(repository / "elsewhere"))
    assert git_state(repository / "src" / "dae") == (commit, False)


def test_a_repository_around_the_package_is_not_meant(repository: Path, tmp_path: Path) -> None:
    """A user's project, with the package in its virtual environment, or copied into it."""
    installed = repository / ".venv" / "lib" / "site-packages" / "dae"
    shutil.copytree(repository / "src" / "dae", installed)
    assert git_state(installed) == (None, None)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "vendored")
    assert git_state(installed) == (None, None)
    shutil.copytree(repository / "src" / "dae", tmp_path / "nowhere" / "src" / "dae")
    assert git_state(tmp_path / "nowhere" / "src" / "dae") == (None, None)


def test_a_package_that_its_place_does_not_hold_is_not_meant(repository: Path) -> None:
    git(repository, "rm", "-q", "--cached", "src/dae/__init__.py")
    git(repository, "commit", "-qm", "not held any more")
    assert git_state(repository / "src" / "dae") == (None, None)


def test_versions_and_machine_are_recorded() -> None:
    record = made_with()
    assert record.versions["dae-rl"] == dae.__version__
    packages = {"dae-rl", "torch", "numpy", "gymnasium", "stable-baselines3", "numba", "ale-py"}
    assert set(record.versions) == packages | {"python"}
    assert (record.git_commit is None) == (record.uncommitted_changes is None)
    assert record.threads == 1
