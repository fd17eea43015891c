"""The imports run one way, and light commands stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dae

PACKAGE = Path(dae.__file__).parent
EVERYTHING = {"core", "theory", "agent", "envs", "runs", "experiments", "report", "explorer"}
ALLOWED: dict[str, set[str]] = {
    "files": set(),
    "plain": set(),
    "pictures": {"files"},
    "core": set(),
    "theory": set(),
    "agent": {"core", "files", "plain"},
    "envs": {"core", "plain"},
    "runs": {"core", "files"},
    "experiments": {"core", "agent", "envs", "runs", "files", "pictures", "plain"},
    "report": {"runs", "files", "pictures"},
    "explorer": {"runs"},
    "cli": EVERYTHING,
    "__init__": EVERYTHING,
    "__main__": {"cli"},
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module that the file imports, at any depth of its code."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    # `from dae import dae_loss` reaches into the room where the public name lives.
    return {
        f"{dae._HOME[name[4:]]}.{name[4:]}" if name[4:] in dae._HOME and name.startswith("dae.") else name
        for name in names
    }


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    assert here in ALLOWED, f"{here} is no room of the house; say in ALLOWED what it may import"
    reached = {name.split(".")[1] for name in imports(path) if name.startswith("dae.")} & set(ALLOWED)
    assert reached <= ALLOWED[here] | {here}, f"{here} must not import {reached - ALLOWED[here] - {here}}"


@pytest.mark.parametrize(
    ("rooms", "foreign"),
    [
        ({"core"}, {"numpy", "gymnasium", "stable_baselines3", "numba"}),
        ({"theory"}, {"torch", "gymnasium", "stable_baselines3", "numba"}),
        ({"report", "runs", "cli", "__init__"}, {"torch"}),
    ],
)
def test_rooms_keep_to_their_libraries(rooms: set[str], foreign: set[str]) -> None:
    for path in FILES:
        if room(path) in rooms:
            libraries = {name.split(".")[0] for name in imports(path)}
            assert not libraries & foreign, path


@pytest.mark.parametrize(
    "statement", ["import dae", "import dae; dae.theory.chain(3)", "import dae.cli", "import dae.report"]
)
def test_light_imports_load_neither_torch_nor_numba(statement: str) -> None:
    code = f"import sys; {statement}; assert not {{'torch', 'numba'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_rooms_that_the_readme_names_are_there_after_importing_the_package() -> None:
    subprocess.run([sys.executable, "-c", "import dae; dae.core.center; dae.theory.chain"], check=True)


def test_public_names_resolve_and_unknown_ones_are_explained() -> None:
    assert {"center", "dae_loss", "gae", "make_vec_env"} <= set(dae.__all__) <= set(dir(dae))
    for name in dae.__all__:
        assert getattr(dae, name) is not None
    with pytest.raises(AttributeError, match="its public names are"):
        dae.daeloss  # noqa: B018
