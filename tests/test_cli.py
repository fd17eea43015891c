"""The command line as a user meets it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dae


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("dae")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def test_version() -> None:
    assert run("version").stdout == f"dae-rl {dae.__version__}\n"


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert "theory" in result.stdout


@pytest.mark.parametrize("gamma", ["0", "0.9", "1"])
def test_theory_prints_a_worked_case_that_agrees_with_itself(gamma: str) -> None:
    result = run("theory", "--seed", "1", "--gamma", gamma)
    assert result.returncode == 0
    assert result.stderr == ""
    rows = [line.split("|") for line in result.stdout.splitlines() if line.count("|") == 1][1:]
    assert len(rows) == 10
    for left, right in rows:
        exact, theorem_1 = left.split()[-1], right.split()[0]
        if theorem_1 != "-":
            assert float(theorem_1) == pytest.approx(float(exact), abs=6e-4)
    assert "nan" not in result.stdout
    deviations = re.findall(r"(?:from A|closed form) (\S+?)[,.]", result.stdout)
    assert len(deviations) == 3
    assert max(float(deviation) for deviation in deviations) < 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "2"], "gamma is 2.0: it must be in [0, 1]"),
        (["--steps", "0"], "steps is 0: it must be an integer of at least 1"),
        (["--states", "2"], "at least one ordinary state"),
        (["--seed", "-1"], "seed is -1: it must be a number of at least 0"),
    ],
)
def test_a_mistake_gets_one_line_and_an_exit_code(arguments: list[str], message: str) -> None:
    result = run("theory", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("dae: ")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("thoery", "dae: 'thoery' is not a command; did you mean theory?\n"),
        ("x", "dae: 'x' is not a command; choose one of "),
    ],
)
def test_an_unknown_command_gets_one_line_with_a_remedy(word: str, message: str) -> None:
    result = run(word)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
