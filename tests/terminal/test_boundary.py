"""Errors that are the user's to solve become one line; bugs keep their traceback."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import dae
from dae.cli import main
from dae.errors import InUse, InvalidValue, UserError
from dae.experiments.training.run import train
from dae.terminal.boundary import exit_code_of
from dae.terminal.signals import Stopped
from tests.experiments.small import ALWAYS, BREAKOUT, CARTPOLE, small


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
        (KeyboardInterrupt(), 130, "dae: stopped by Ctrl-C\n"),
        (Stopped(15), 143, ""),
    ],
)
def test_what_the_user_can_solve_is_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(raising(error)) == code
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("bug", [ValueError, TypeError, AttributeError, KeyError, FileNotFoundError, RuntimeError])
def test_a_bug_keeps_its_traceback(bug: type[Exception]) -> None:
    with pytest.raises(bug):
        exit_code_of(raising(bug("ours")))


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line_without_its_place_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        for _ in range(2):
            warnings.warn("\x1b[33mWARN: it is\nout of date\x1b[0m", DeprecationWarning, stacklevel=1)
        warnings.warn("nothing is learned", stacklevel=1)
        return 3

    shown_by_python = warnings.showwarning
    assert exit_code_of(command) == 3
    assert capsys.readouterr().err == "dae: it is out of date\ndae: nothing is learned\n"
    assert warnings.showwarning is shown_by_python
    monkeypatch.setattr("sys.warnoptions", ["always"])
    with warnings.catch_warnings(record=True) as seen:
        exit_code_of(command)
    assert [warning.category for warning in seen] == [DeprecationWarning, DeprecationWarning, UserWarning]
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("default")
def test_warnings_of_an_environment_are_lines_for_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v0", *CARTPOLE[1:], *ALWAYS, "--frames", "300", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == (
        "dae: The environment CartPole-v0 is out of date. You should consider upgrading to version `v1`.\n"
    )


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


@pytest.mark.parametrize(
    ("place", "env"),
    [
        ("dae.envs.minatar.batch.MinAtarBatch._planes", "MinAtar/Breakout-v1"),
        ("dae.envs.snapshots._attributes", "CartPole-v1"),
        ("dae.experiments.training.building._network", "CartPole-v1"),
    ],
)
def test_a_bug_in_our_environments_is_not_hidden(
    place: str, env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["train", env, *BREAKOUT[1:], "--frames", "100", "--out", str(tmp_path)])


def test_a_bug_while_drawing_leaves_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.envs.minatar.vec_env.MinAtarVecEnv.get_images", lambda *_: 1 / 0)
    config = small(tmp_path, "--frames", "300", "--pictures", "True")
    assert train(config) == 0
    assert "the pictures could not be drawn (ZeroDivisionError" in capsys.readouterr().err
    assert "get_images" in (config.folder / "error.txt").read_text()


def test_library_users_get_a_value_error() -> None:
    for mistake in (
        lambda: dae.PPO("MlpPolicy", "CartPole-v1", gamma=2),
        lambda: dae.make_vec_env("CartPole-v1", 0),
        lambda: dae.make_vec_env("CartPol-v1", 1),
    ):
        with pytest.raises(ValueError, match=r"it must be|did you mean") as caught:
            mistake()
        assert isinstance(caught.value, UserError)
