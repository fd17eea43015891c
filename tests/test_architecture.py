"""The imports run one way, and light commands stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dae

PACKAGE = Path(dae.__file__).parent
# What everyone may use: a few small modules that know nothing of the rooms.
TOOLS = {"errors", "files", "lazy", "rules", "serialization", "text"}
FACTS = {"catalog", "hyperparameters", "paper"}
ALLOWED: dict[str, set[str]] = {
    **dict.fromkeys(TOOLS, TOOLS),
    **dict.fromkeys(FACTS, TOOLS),
    "catalog": {"hyperparameters"} | TOOLS,
    "terminal": TOOLS,
    "pictures": TOOLS | FACTS,
    "core": set(),
    "theory": TOOLS,
    "agent": {"core"} | TOOLS | FACTS,
    "envs": TOOLS | FACTS,
    "runs": {"envs", "terminal"} | TOOLS | FACTS,
    "explorer": TOOLS | FACTS,
    "experiments": {"core", "agent", "envs", "runs", "pictures", "terminal", "explorer"} | TOOLS | FACTS,
    "report": {"envs", "runs", "pictures", "terminal"} | TOOLS | FACTS,
    "cli": {"theory", "experiments", "report", "runs", "terminal"} | TOOLS,
    "__init__": {"agent", "core", "envs", "experiments", "lazy"},
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
        f"{dae._HOMES[name[4:]]}.{name[4:]}" if name[4:] in dae._HOMES and name.startswith("dae.") else name
        for name in names
    }


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    assert here in ALLOWED, f"{here} is not a room of the house; say in ALLOWED what it may import"
    reached = {name.split(".")[1] for name in imports(path) if name.startswith("dae.")} & set(ALLOWED)
    assert reached <= ALLOWED[here] | {here}, f"{here} must not import {reached - ALLOWED[here] - {here}}"


@pytest.mark.parametrize(
    ("rooms", "foreign"),
    [
        ({"core"}, {"numpy", "gymnasium", "stable_baselines3", "numba"}),
        ({"theory"}, {"torch", "gymnasium", "stable_baselines3", "numba"}),
        ({"report", "runs", "cli", "__init__", "terminal", "explorer"} | FACTS | TOOLS, {"torch", "stable_baselines3"}),
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


def test_the_help_of_no_command_waits_for_libraries_that_only_work_needs() -> None:
    code = """
import contextlib, io, sys
from dae.cli import COMMANDS, main
for name in COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main([name, "--help"])
    assert f"usage: dae {name}" in text.getvalue(), name
    assert not {"torch", "numba", "stable_baselines3", "matplotlib"} & set(sys.modules), name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_rooms_that_the_readme_names_are_there_after_importing_the_package() -> None:
    subprocess.run([sys.executable, "-c", "import dae; dae.core.center; dae.theory.chain"], check=True)


def test_public_names_resolve_and_unknown_ones_are_explained() -> None:
    assert {"center", "dae_loss", "gae", "make_vec_env"} <= set(dae.__all__) <= set(dir(dae))
    for name in dae.__all__:
        assert getattr(dae, name) is not None
    with pytest.raises(AttributeError, match="its public names are"):
        dae.daeloss  # noqa: B018
