"""What the package imports, it declares."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(root: Path) -> dict[str, Path]:
    """The top-level modules that files import, with one file that does."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {name.split(".")[0]: path for name in names}
    return found


def test_everything_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    declared = {normalised(re.split(r"[<>=!\[; ]", line)[0]) for line in [*project["dependencies"], *extras]}
    of_modules = packages_distributions()
    for module, path in imported(ROOT / "src").items():
        if module not in sys.stdlib_module_names and module != "dae":
            distributions = {normalised(name) for name in of_modules.get(module, [])}
            assert distributions & declared, f"{path} imports {module}, which pyproject.toml does not name"


def test_every_dependency_is_pinned_and_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {normalised(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    explained = (ROOT / "docs" / "dependencies.md").read_text().lower()
    for line in [*project["dependencies"], *(x for lines in project["optional-dependencies"].values() for x in lines)]:
        name = normalised(re.split(r"[<>=!\[; ]", line)[0])
        assert name in pinned, name
        assert name in explained, name
