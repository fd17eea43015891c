"""Errors that are the user's to solve become one line; bugs keep their traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

import dae
from dae.cli import main
from dae.errors import InUse, InvalidValue, UserError
from dae.terminal.boundary import exit_code_of
from dae.terminal.signals import Stopped
from tests.experiments.small import BREAKOUT


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("x is 3:\nit must be 4"), 2, "dae: x is 3: it must be 4\n"),
        (InvalidValue("gamma is 2"), 2, "dae: gamma is 2\n"),
        (InUse("busy"), 75, "dae: busy\n"),
        (OSError(28, "No space left on device"), 2, "dae: [Errno 28] No space left on device\n"),
        (KeyboardInterrupt(), 130, ""),
        (Stopped(15), 143, ""),
    ],
)
def test_what_the_user_can_solve_is_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(raising(error)) == code
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("bug", [ValueError, TypeError, AttributeError, KeyError, AssertionError, RuntimeError])
def test_a_bug_keeps_its_traceback(bug: type[Exception]) -> None:
    with pytest.raises(bug):
        exit_code_of(raising(bug("ours")))


@pytest.mark.parametrize("bug", [ValueError, TypeError, AttributeError])
def test_a_bug_of_ours_does_not_look_like_a_mistake_or_a_damaged_file(
    bug: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dae.PPO("MlpPolicy", "CartPole-v1").save(tmp_path / "agent.zip")

    def broken(*_: object, **__: object) -> None:
        raise bug("a mistake in the program")

    monkeypatch.setattr("dae.agent.interface.check_model", broken)
    with pytest.raises(bug, match=r"\Aa mistake in the program\Z"):
        dae.PPO.load(tmp_path / "agent.zip")
    with pytest.raises(bug, match=r"\Aa mistake in the program\Z"):
        main(["train", *BREAKOUT, "--out", str(tmp_path / "runs")])
    assert not (tmp_path / "runs").exists()


def test_library_users_get_a_value_error() -> None:
    for mistake in (
        lambda: dae.PPO("MlpPolicy", "CartPole-v1", gamma=2),
        lambda: dae.make_vec_env("CartPole-v1", 0),
        lambda: dae.make_vec_env("CartPol-v1", 1),
    ):
        with pytest.raises(ValueError, match=r"it must be|did you mean") as caught:
            mistake()
        assert isinstance(caught.value, UserError)
