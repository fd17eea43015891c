"""Completion scripts: bash's as bash runs it, the others by what is in them."""

import shlex
import subprocess
from pathlib import Path

import pytest

from dae.cli import COMMANDS, main
from dae.envs import families


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def answers(file: Path, lines: list[list[str]]) -> list[set[str]]:
    """Let bash source the script, and ask for the last word of each line, which is split as bash splits it."""
    asked = [
        f"COMP_WORDS=({shlex.join(line)}); COMP_CWORD={len(line) - 1}; COMPREPLY=(); _dae; echo ${{COMPREPLY[*]}}"
        for line in lines
    ]
    told = subprocess.run(
        ["bash", "-u", "-c", "\n".join([f"source {file}", *asked])], capture_output=True, text=True, check=True
    )
    assert told.stderr == ""
    return [set(line.split()) for line in told.stdout.split("\n")[:-1]]


def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "dae"
    file.write_text(script("bash", capsys))
    presets = {name for family in families() for name in family.presets}
    expected: list[tuple[list[str], set[str]]] = [
        (["dae", ""], {*COMMANDS, "version"}),
        (["dae", "tr"], {"train"}),
        (["dae", "train", "--adv"], {"--advantage"}),
        (["dae", "train", "CartPole-v1", "--advantage", ""], {"gae", "dae", "duel", "indirect"}),
        (["dae", "train", "--advantage", "d"], {"dae", "duel"}),
        (["dae", "train", "--advantage", "=", "d"], {"dae", "duel"}),
        (["dae", "train", "--advantage", "="], {"gae", "dae", "duel", "indirect"}),
        (["dae", "train", "--preset", ""], presets),
        (["dae", "train", "--preset", "quick", "--pict"], {"--pictures"}),
        (["dae", "train", "--pictures", ""], {"yes", "no"}),
        (["dae", "train", "--out", ""], set()),  # files
        (["dae", "sweep", "sm"], {"smoke"}),
        (["dae", "sweep", "--advantages", "dae", "g"], {"gae"}),
        (["dae", "sweep", "--preset", "quick", "sm"], {"smoke"}),
        (["dae", "sweep", "--launcher", "r"], {"ray"}),
        (["dae", "play", ""], set()),  # folders
        (["dae", "play", "run", "--film", "m"], {"mp4"}),
        (["dae", "completion", ""], {"bash", "zsh", "fish"}),
    ]
    for (line, words), found in zip(expected, answers(file, [line for line, _ in expected]), strict=True):
        assert found == words, line


def test_zsh_and_fish_have_the_same_choices(capsys: pytest.CaptureFixture[str]) -> None:
    zsh, fish = script("zsh", capsys), script("fish", capsys)
    assert zsh.startswith("#compdef dae\n")
    assert "'train --advantage') choices=(gae dae duel indirect) ;;" in zsh
    assert "'sweep --advantages+') choices=(gae dae duel indirect) ;;" in zsh
    # bash reads the same words and brackets: what it cannot read, zsh cannot either.
    assert subprocess.run(["bash", "-n"], input=zsh, text=True, capture_output=True, check=False).stderr == ""
    train = "complete -c dae -n '__fish_seen_subcommand_from train'"
    assert f"{train} -l advantage -x -a 'gae dae duel indirect'\n" in fish
    assert f"{train} -l out -r\n" in fish
    for line in fish.splitlines()[1:]:
        assert line.startswith("complete -c dae ")
        assert line.count("'") % 2 == 0
