"""What the documentation shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def code_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


EXAMPLES = [
    pytest.param(code, id=f"{path.name}-{i}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for i, code in enumerate(code_blocks(path))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_run(code: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path, capture_output=True)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


def test_the_worked_case_in_the_docs_is_what_the_command_prints() -> None:
    command = Path(sys.executable).with_name("dae")
    printed = subprocess.run([command, "theory"], capture_output=True, text=True, check=True).stdout
    shown = re.search(r"```\n(1\. What.*?)```", (ROOT / "docs" / "theory.md").read_text(), re.DOTALL)
    assert shown is not None
    without_rounding = re.compile(r"\d+e-\d+")
    assert without_rounding.sub("", shown.group(1).strip()) == without_rounding.sub("", printed.strip())
