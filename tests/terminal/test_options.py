"""Options as a user may write them, mistakes in them, and help."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro

from dae.cli import COMMANDS, main
from dae.errors import UserError
from dae.experiments.config import parse
from dae.terminal.options import optional_words, read_options


@dataclass(frozen=True)
class Meal:
    """Cook something.

    dae cook soup --salt
    """

    dish: Annotated[str, tyro.conf.Positional, optional_words("DISH")] = ""
    """What to cook."""
    salt: bool = False
    """Add salt."""
    no_fire: bool = False
    """Cook without a fire."""
    served_as: Literal["starter", "main"] = "main"
    """When it is served."""
    guests: int = 2
    """How many eat."""


def cook(*words: str) -> Meal:
    return read_options(Meal, "dae cook", words)


@pytest.mark.parametrize("yes", ["yes", "Yes", "true", "True", "on", "1"])
@pytest.mark.parametrize("no", ["no", "NO", "false", "False", "off", "0"])
def test_a_switch_takes_yes_and_no_in_many_words(yes: str, no: str) -> None:
    assert cook("soup", "--salt", yes) == cook("soup", f"--salt={yes}") == Meal("soup", salt=True)
    assert cook("--salt", no, "soup") == cook(f"--salt={no}", "soup") == Meal("soup")


def test_a_switch_may_stand_alone_or_begin_with_no() -> None:
    assert cook("--salt", "soup") == cook("soup", "--salt") == cook("--salt", "--guests", "2", "soup")
    assert cook("--salt", "soup").salt
    assert not cook("--salt", "--no-salt").salt
    assert cook("--no-fire", "--no_salt").no_fire
    assert cook("--no-fire", "no") == cook("--no-no-fire") == Meal()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["soup", "--salt", "maybe"], "--salt is 'maybe': it must be yes or no (or true, false, on, off, 1, 0)"),
        (["--salt", "maybe", "soup"], "--salt is 'maybe': it must be yes or no (or true, false, on, off, 1, 0)"),
        (["soup", "--salt=maybe"], "--salt: 'maybe' is not yes or no (or true, false, on, off, 1, 0)"),
        (["--slat"], "--slat is not an option of dae cook; did you mean --salt?"),
        (["--geusts=3"], "--geusts is not an option of dae cook; did you mean --guests?"),
        (["--xyz", "3"], "--xyz is not an option of dae cook; see dae cook --help"),
        (["--served-as", "mian"], "--served-as is 'mian': it must be one of starter, main; did you mean main?"),
        (["--served-as", "xyz"], "--served-as is 'xyz': it must be one of starter, main"),
        (["--guests"], "--guests has no value: see dae cook --help"),
        (["soup", "salad"], "'salad' is more than dae cook takes: see dae cook --help"),
    ],
)
def test_a_mistake_is_one_line_with_the_rule_or_what_was_meant(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        cook(*words)
    assert str(refused.value) == message


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def flat(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", "", text).split())


def test_help_shows_the_values_that_the_other_options_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = shown(capsys, "train", "--help", "MinAtar/Breakout-v1", "--preset", "quick", "--no-pictures")
    assert quick.startswith("usage: dae train MinAtar/Breakout-v1 [OPTIONS]\n\nTrain an agent.")
    assert "mymodule:MyEnv-v0 to import first. (default: MinAtar/Breakout-v1)" in flat(quick)
    assert "such as 500K or 10M; 4 of them pass in a step of an Atari game, elsewhere 1. (default: 1M)" in flat(quick)
    assert "--pictures {yes,no} Draw the learning curve and record an episode at the end. (default: no)" in flat(quick)
    (tmp_path / "mine.toml").write_text('env = "CartPole-v1"\nseed = 77\nanneal = "no"\n')
    of_file = shown(capsys, "train", "--config", str(tmp_path / "mine.toml"), "-h", "--actors", "3")
    assert of_file.startswith("usage: dae train CartPole-v1 [OPTIONS]\n")
    assert "and the environments. (default: 77)" in flat(of_file)
    assert "side by side. (default: 3)" in flat(of_file)
    assert "fall linearly to 0 over the run. (default: no)" in flat(of_file)


def test_a_mistake_does_not_keep_the_help_away(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--presett", "quick"], ["--config", "nowhere.toml"], ["--resume", "nowhere"], ["--frames", "x"]):
        assert shown(capsys, "train", *words, "--help").startswith("usage: dae train [ENV] [OPTIONS]\n")


def test_text_in_a_file_can_be_a_switch_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('env = "CartPole-v1"\nanneal = "off"\npictures = "no"\nfinishing = false\nextra_mlp = "Yes"\n')
    config = parse(["--config", str(file)])
    assert (config.anneal, config.pictures, config.finishing, config.extra_mlp) == (False, False, False, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples_and_fits_into_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(capsys, command, "--help")
    assert text.startswith(f"usage: dae {command} ")
    assert max(map(len, text.splitlines())) <= 80
    examples = re.findall(rf"^    (dae {command}.*)$", text.partition("╭")[0], re.MULTILINE)
    assert len(examples) >= 2
    assert "(default: )" not in text
    assert "(default: '')" not in text
