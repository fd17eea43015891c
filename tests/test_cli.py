"""The command line as a user meets it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dae
from dae.cli import main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("dae")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version").stdout == f"dae-rl {dae.__version__}\n"
    for word in ("version", "-V"):
        assert main([word]) == 0
        assert capsys.readouterr().out == f"dae-rl {dae.__version__}\n"


def test_help_lists_the_commands() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert "theory" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "'trian' is not a command; did you mean train?"),
        (["train", "CartPole-v1", "--preset", "quikc"], "preset is 'quikc': .*; did you mean quick?"),
        (["train", "CartPole-v1", "--advantage", "daee"], "advantage='daee' is not known; .*; did you mean dae?"),
        (["train", "CartPole-v1", "--network", "wdie"], "network is 'wdie': .*; did you mean wide?"),
        (["train", "CartPole-v1", "--fraems=5K"], "--fraems is not an option of dae train; did you mean --frames?"),
        (["sweep", "smoke", "--launcher", "rya"], "--launcher is 'rya': .*; did you mean ray?"),
        (["sweep", "smoke", "--settings", "fraems=500K"], "settings has 'fraems=500K': .*; did you mean frames?"),
        (["sweep", "smoke", "--settings", "batch-sise=5"], "settings has .*; did you mean batch_size?"),
        (["report", "--axes", "frames"], "--axes is not an option of dae report; did you mean --axis?"),
        (["synthetic", "--methods", "dea"], "--methods is 'dea': .*; did you mean dae?"),
        (["completion", "fsh"], "shell is 'fsh': it must be one of bash, zsh, fish; did you mean fish?"),
    ],
)
def test_a_misspelt_name_gets_one_line_with_what_was_meant(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch("dae: " + message.replace("?", "\\?") + "\n", told.err), told.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "a/b"])
@pytest.mark.parametrize(
    "words", [["train", "CartPole-v1"], ["sweep", "smoke"], ["play", "nowhere"], ["synthetic"], ["report", "."]]
)
def test_a_file_in_place_of_the_results_is_refused_before_any_work(
    words: list[str], below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert main([*words, "--out", str(file / below)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"dae: {file} cannot be a folder, because a file is in its place: choose another --out\n"
    assert file.read_text() == "mine"
