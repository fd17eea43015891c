"""`dae train`, `dae play` and `dae runs` as a user meets them."""

import contextlib
import json
import os
import pickle
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image
from stable_baselines3.common.monitor import load_results
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dae
from dae.cli import main
from dae.errors import UserError
from dae.experiments.config import TrainConfig, parse
from dae.experiments.training.building import make_env, make_model
from dae.experiments.training.recorder import Recorder
from dae.experiments.training.run import train
from dae.experiments.training.state import Counters
from dae.runs import Checkpoints, RunFolder
from dae.terminal.options import format_count, parse_count
from tests.experiments.small import ALWAYS, BREAKOUT, CARTPOLE, small
from tests.processes import Fork, wait_until

COMMAND = [sys.executable, "-m", "dae"]


def test_a_run_leaves_scores_pictures_and_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*BREAKOUT, *ALWAYS, "--pictures", "True", "--frames", "4K", "--out", str(tmp_path)]
    assert main(["train", *words]) == 0
    out = capsys.readouterr().out
    folder = tmp_path / "MinAtar-Breakout-v1" / "dae-baseline" / "seed-0"
    assert out.startswith("MinAtar/Breakout-v1, dae, 8 actors: cpu, 1 thread, network of 3")
    assert re.search(r"\n4,096 frames \(4,000, rounded up to whole iterations\) in \d+ seconds?, \d+ episodes\n", out)
    assert re.search(r"mean score in the first tenth of the frames .+, of the last \d+ episodes [\d.]+, of all", out)
    assert f"next: dae play {folder}" in out
    assert f"dae explore {folder}" in out
    with Image.open(folder / "learning_curve.png") as picture:
        assert picture.size == (960, 600)
    with Image.open(folder / "episode.gif") as film:
        assert film.n_frames > 3
    film = (folder / "episode.gif").read_bytes()
    (folder / "episode.gif").unlink()
    assert main(["train", *words]) == 0  # draws what is missing, and nothing else
    told = capsys.readouterr().out
    assert "learning curve " not in told
    assert (folder / "episode.gif").read_bytes() == film
    run = dae.load_run(folder)
    assert run.config.frames == 4000
    assert run.model.num_timesteps == 4096
    assert load_results(str(folder))["r"].sum() == run.episodes.scores.sum()
    assert list((folder / "tensorboard").glob("events.*"))
    made_with = json.loads((folder / "config.json").read_text())["made_with"]
    assert made_with["versions"]["torch"].startswith("2.")
    assert re.fullmatch(r"[0-9a-f]{40}", made_with["git_commit"])

    assert main(["play", str(folder), "--episodes", "5", "--greedy", "True"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"5 greedy episodes: score [\d.]+ ± [\d.]+ \(mean ± standard error\)", out)
    assert len(list((folder / "play").glob("*.gif"))) == 1

    assert main(["runs", str(tmp_path)]) == 0
    assert re.search(r"seed-0 +finished +4,096/4,000 +4,096 +[\d.]+ +[\d,]+", capsys.readouterr().out)


def test_tensorboard_reads_what_a_run_logs(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "500")
    assert train(config) == 0
    events = EventAccumulator(str(config.folder / "tensorboard")).Reload()
    assert {"train/loss", "train/approx_kl", "rollout/ep_rew_mean", "time/fps"} <= set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("train/loss")] == [256, 384, 512]
    assert all(np.isfinite(event.value) for event in events.Scalars("train/loss"))


def test_gae_and_wide_networks_train_and_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--advantage", "gae", "--extra-mlp", "True"], ["--network", "wide", "--separate-networks", "True"]):
        config = small(tmp_path, "--frames", "256", "--pictures", "True", *words)
        assert train(config) == 0
        assert main(["play", str(config.folder), "--episodes", "1", "--film", "none"]) == 0
    assert "1 stochastic episode:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "env is '': it must be an environment id, such as MinAtar/Breakout-v1"),
        (["MinAtar/Breakot-v1"], "environment 'MinAtar/Breakot-v1' is not known; did you mean MinAtar/Breakout-v1"),
        (["Pendulum-v1"], "MultiBinary ones, because it sums over all of them; use --advantage gae"),
        ([*BREAKOUT, "--frames", "abc"], "--frames: 'abc' is not a whole number, such as 12345, 500K or 10M"),
        ([*BREAKOUT, "--frames", "0"], "frames is 0: it must be an integer in [1, 2^53)"),
        ([*BREAKOUT, "--framess", "3"], "--framess is not an option of dae train; did you mean --frames?"),
        ([*BREAKOUT, "--advantage", "gea"], "advantage='gea' is not known; choose one of gae, dae, duel, indirect"),
        ([*BREAKOUT, "--gamma", "1.5"], "gamma is 1.5: it must be in [0, 1]"),
        ([*BREAKOUT, "--learning-rate", "nan"], "learning_rate is nan: it must be a number of at least 0"),
        ([*BREAKOUT, "--clip-range", "0"], "clip_range is 0.0: it must be a positive number"),
        ([*BREAKOUT, "--epochs", "0"], "epochs is 0: it must be an integer of at least 1"),
        ([*BREAKOUT, "--actors", "0"], "actors is 0: it must be an integer in [1, 2^53)"),
        ([*BREAKOUT, "--seed", "-1"], "seed is -1: it must be in [0, 2^32)"),
        ([*BREAKOUT, "--frames", "1e30"], "it must be an integer in [1, 2^53)"),
        ([*BREAKOUT, "--device", "gpu"], "device is 'gpu': it must be auto, cpu, mps, cuda or cuda:N"),
        ([*BREAKOUT, "--device", "cuda:99"], "device is 'cuda:99': it must be one that is available, auto or cpu"),
        ([*BREAKOUT, "--device", "mps"], "device is 'mps': it must be one that is available, auto or cpu"),
        (["CartPole-v1", "--device", "cuda"], "device is 'cuda': it must be one that is available, auto or cpu"),
        (["Blackjack-v1"], "observations of the kind Tuple are not supported: it must be Box, Discrete,"),
        (["CartPole-v1", "--actors", "10M"], "a rollout of 128 steps x 10,000,000 environments takes"),
        (["CartPole-v1", "--actors", "100M", "--steps", "1"], "a rollout of 1 step x 100,000,000 environments takes"),
        (
            [*BREAKOUT, "--actors", "1e15"],
            "x 1,000,000,000,000,000 environments does not fit into memory",
        ),
        (["\udcff"], r"env is '\udcff': it must be an environment id"),
        ([*BREAKOUT, "--steps", "0"], "steps is 0: it must be an integer of at least 1"),
        (["--config", "/dev/zero"], "config file /dev/zero cannot be read: it is not a regular file"),
        ([*BREAKOUT, "--threads", "100000000"], "threads is 100000000: it must be in [0, 1024]"),
        ([*BREAKOUT, "--network", "deep"], "network is 'deep': it must be baseline or wide for MinAtar/Breakout-v1"),
        ([*BREAKOUT, "--config", "none.toml"], "config file none.toml cannot be read: No such file or directory"),
        (["--resume", "nowhere"], "there is no run at nowhere: it has no config.json"),
        ([*BREAKOUT, "--out", "/proc/none"], "No such file or directory"),
    ],
)
def test_a_mistake_gets_one_line_and_leaves_the_disk_alone(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if not line.startswith(("dae: preparing", "dae: ready"))]
    assert len(lines) == 1
    assert lines[0].startswith("dae: ")
    assert message in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_the_command_itself_exits_with_the_code(tmp_path: Path) -> None:
    result = subprocess.run(
        [*COMMAND, "train", "Nothing-v0"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


def test_a_run_is_clean_in_development_mode(tmp_path: Path) -> None:
    words = [*BREAKOUT, *ALWAYS, "--pictures", "True", "--frames", "300", "--out", str(tmp_path)]
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-m", "dae", "train", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    ours = [line for line in result.stderr.splitlines() if str(Path(dae.__file__).parent) in line]
    assert ours == []
    assert "Traceback" not in result.stderr


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    words = [*BREAKOUT, *ALWAYS, "--frames", "2K", "--out", str(tmp_path)]
    process = subprocess.Popen([*COMMAND, "train", *words], stdout=terminal, env=os.environ | {"COLUMNS": "160"})
    os.close(terminal)
    patience = threading.Timer(120, process.kill)
    patience.start()
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while chunk := os.read(main, 65536):
            shown += chunk
    patience.cancel()
    assert process.wait(60) == 0
    text = shown.decode()
    assert "frames" in text
    assert "last-100 score" in text
    assert "━" in text


def test_progress_without_a_terminal_is_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.terminal.progress.SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("dae.experiments.training.recorder._SECONDS_BETWEEN_LOOKS", 0.0)
    assert train(small(tmp_path, "--frames", "500")) == 0
    out = capsys.readouterr().out
    assert "\nlearning: " in out, "as all that is said of an update of Stable-Baselines3's"
    news = r"last-100 score \S+, \d+ episodes\n"
    for phase, first, last in (("collecting", 6, 100), ("learning", 25, 100)):
        assert re.search(rf"\n{phase} {first}%: \d+ of 500 frames, first iteration, {news}", out), (
            "there is no speed yet"
        )
        assert re.search(rf"\n{phase} {last}%: \d+ of 500 frames, [\d,]+/s, \d+:\d\d left, {news}", out)


def test_the_speed_of_a_run_is_that_of_whole_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = dae.PPO.train

    def slow(agent: dae.PPO) -> None:
        time.sleep(0.2)
        learn(agent)

    monkeypatch.setattr(dae.PPO, "train", slow)
    config = small(tmp_path, "--frames", "256", of=CARTPOLE)
    assert train(config) == 0
    assert 0 < RunFolder(config.folder).read_status().frames_per_second < 128 / 0.2


def test_a_process_that_is_not_the_first_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, of=CARTPOLE)
    agent = make_model(config, make_env(config))
    with Recorder(config, RunFolder(config.folder), agent, Counters()) as recorder:
        recorder.mark_iteration()
        recorder.show_collecting(0.5)
        assert agent.after_minibatch is None
    assert capsys.readouterr() == ("", "")


# Settings. -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "number"), [("500", 500), ("500K", 500_000), ("10M", 10**7), ("1.5e3", 1500)])
def test_counts(text: str, number: int) -> None:
    assert parse_count(text) == number
    assert parse_count(format_count(number)) == number


@pytest.mark.parametrize("text", ["1.5", "K", "", "inf", "nan", "ten"])
def test_counts_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a whole number|could not convert"):
        parse_count(text)


def test_the_papers_settings() -> None:
    minatar, gae = (parse(["MinAtar/Asterix-v1", "--advantage", a]) for a in ("dae", "gae"))
    shared = {"actors": 1024, "frames": 10_000_000, "steps": 128, "batch_size": 256, "learning_rate": 2.5e-4}
    shared |= {"clip_range": 0.1, "anneal": True, "gamma": 0.99, "ent_coef": 0.01, "finishing": True}
    for config in (minatar, gae):
        assert shared.items() <= vars(config).items()
    assert (minatar.epochs, minatar.critic_coef, minatar.max_grad_norm) == (6, 1.5, None)
    assert (gae.epochs, gae.critic_coef, gae.max_grad_norm, gae.gae_lambda) == (4, 0.5, 0.5, 0.95)
    assert parse(["ALE/Pong-v5"]).frames == 40_000_000
    quick = parse(["MinAtar/Breakout-v1", "--preset", "quick"])
    assert (quick.actors, quick.frames, quick.finishing) == (32, 1_000_000, False)


@pytest.mark.parametrize(("env", "critic"), [("MinAtar/Breakout-v1", (1.5, None)), ("ALE/Pong-v5", (0.5, 0.5))])
def test_the_short_runs_of_games_have_few_actors_and_a_correction(env: str, critic: tuple[float, float | None]) -> None:
    dae, duel, gae = (parse([env, "--preset", "quick", "--advantage", a]) for a in ("dae", "duel", "gae"))
    assert (dae.correction, dae.row_length) == (1, 1)
    assert (duel.correction, duel.row_length) == (1, None), "with rows of one step it would be DAE"
    assert (dae.critic_coef, dae.max_grad_norm) == (duel.critic_coef, duel.max_grad_norm) == critic
    assert (gae.critic_coef, gae.max_grad_norm) == (0.5, 0.5)
    shared = {"steps": 128, "batch_size": 256, "epochs": 3, "clip_range": 0.1, "anneal": True, "ent_coef": 0.01}
    for config in (dae, duel, gae):
        assert shared.items() <= vars(config).items()


def test_a_config_file_is_between_preset_and_options(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'env = "MinAtar/Freeway-v1"\npreset = "quick"\nframes = "2M"\nanneal = false\nmax_grad_norm = 0.5\n'
    )
    config = parse(["--config", str(file), "--frames", "3M"])
    assert (config.env, config.actors, config.frames, config.anneal) == ("MinAtar/Freeway-v1", 32, 3_000_000, False)
    assert config.max_grad_norm == 0.5
    file.write_text(
        'env = "CartPole-v1"\nadvantage = "gae"\nframes = 1e4\nmax_grad_norm = "None"\nlearning_rate = "0.001"\n'
        'anneal = "false"\nout = "elsewhere"\ngamma = 1\n'
    )
    config = parse(["--config", str(file)])
    assert (config.frames, config.max_grad_norm, config.learning_rate) == (10_000, None, 0.001)
    assert (config.anneal, config.out, config.gamma) == (False, Path("elsewhere"), 1.0)
    for text, message in (
        ("gamma = true", "mine.toml: gamma is True: it must be in"),
        ('frames = "many"', "mine.toml: frames: 'many' is not a whole number"),
        ("frames = 1.5", "mine.toml: frames is 1.5: it must be an integer in"),
        ("env = 5", "mine.toml: env is 5: it must be an environment id"),
        ("anneal = 3", "mine.toml: anneal is 3: it must be True or False"),
        ('anneal = "--help"', "mine.toml: anneal is '--help': it must be True or False"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            parse(["--config", str(file)])
    for content in ("[1, 2]", '{"a": 1}', '{"settings": 3}'):
        (tmp_path / "mine.json").write_text(content)
        with pytest.raises(UserError, match=r"mine.json: its settings are"):
            parse(["--config", str(tmp_path / "mine.json")])
    file.write_text("framse = 3\n")
    with pytest.raises(UserError, match=r"mine.toml: 'framse' is not a setting; did you mean frames\?"):
        parse(["--config", str(file)])
    file.write_text("frames = \n")
    with pytest.raises(UserError, match=r"config file .*mine.toml cannot be read"):
        parse(["--config", str(file)])


def test_a_config_file_may_be_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "settings.toml"
    os.mkfifo(pipe)
    writer = Fork(lambda: pipe.write_text('env = "CartPole-v1"\nseed = 5\n') and 0)
    wait_until(lambda: parse_or_none(pipe) is not None)
    assert writer.wait() == 0


def parse_or_none(pipe: Path) -> TrainConfig | None:
    """Read settings from a pipe; as long as nobody writes to it, it is empty."""
    config = parse(["--config", str(pipe)])
    return config if config.seed == 5 else None


def test_every_setting_has_a_sentence_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["MinAtar/Breakout-v1", "--preset", "quick", "--help"])
    text = " ".join(re.sub(r"[│╭╮╰╯─]", "", capsys.readouterr().out).split())
    for name in TrainConfig.__dataclass_fields__:
        if name not in ("env", "extended_from"):  # the run's own
            described = re.search(rf"--{name.replace('_', '-')} .*?\. \(", text)
            assert described is not None, name
    assert "(default: 1M)" in text


def test_the_rules_of_the_authors_minatar_reach_the_games(capsys: pytest.CaptureFixture[str]) -> None:
    older = parse(["MinAtar/Seaquest-v1", "--minatar-version", "1.0.10", "--actors", "2"])
    assert make_env(older).batch.version == "1.0.10"
    assert main(["train", "CartPole-v1", "--minatar-version", "1.0.10"]) == 2
    assert "minatar_version is '1.0.10': CartPole-v1 is not a game of MinAtar" in capsys.readouterr().err


def test_other_settings_for_the_same_folder_are_refused(tmp_path: Path) -> None:
    assert train(small(tmp_path, "--frames", "300")) == 0
    with pytest.raises(UserError, match=r"different settings \(frames is 300 there and 200 here; gamma is"):
        train(small(tmp_path, "--frames", "200", "--gamma", "0.9"))
    folder = small(tmp_path, "--frames", "300").folder
    with pytest.raises(UserError, match="seed is 0 there and 1 here"):
        train(parse(["--resume", str(folder), "--seed", "1"]))


# What environments do. -----------------------------------------------------------------------------------------------


class Faulty(gym.Env):
    """Goes wrong at step 40 of its life, in the way its name says."""

    observation_space = gym.spaces.Box(-10, 10, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, fault: str) -> None:
        self.fault, self.age = fault, 0
        if fault == "init":
            raise RuntimeError("no licence")
        if fault == "leave":
            sys.exit("goodbye")

    @staticmethod
    def happen() -> None:
        """What a test lets happen in the middle of a run."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self.fault == "reset" and self.age >= 40:
            raise RuntimeError("cannot start")
        self.time = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> Any:
        self.time, self.age = self.time + 1, self.age + 1
        observation, reward = np.full(2, 0.1, np.float32), 1.0
        if self.fault == "soon" and self.age == 3:
            sys.exit(0)
        if self.age >= 200:
            if self.fault == "step":
                raise RuntimeError("the simulator\nis gone")
            if self.fault == "reward":
                reward = float("nan")
            if self.fault == "observation":
                observation[1] = np.inf
            if self.fault == "explosion":
                reward = 3e38
            if self.fault == "shape":
                observation = np.zeros(3, np.float32)
            if self.fault == "exit":
                sys.exit("goodbye")
            if self.fault == "call":
                Faulty.happen()
        return observation, reward, self.time == 10, False, {}


for fault in ("init", "reset", "step", "reward", "observation", "explosion", "shape", "exit", "call", "soon", "leave"):
    gym.register(f"Faulty{fault.title()}-v0", Faulty, kwargs={"fault": fault}, disable_env_checker=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("Step", "RuntimeError: the simulator is gone; details are in"),
        ("Soon", "SystemExit: 0; details are in"),
        ("Reset", "RuntimeError: cannot start; details are in"),
        ("Shape", "ValueError: could not broadcast"),
        ("Reward", "environment 0 gave the reward nan at step"),
        ("Observation", "environment 0 gave an observation with NaN or infinity at step"),
        ("Explosion", "the loss or its gradient was not finite in the update after"),
        ("Exit", "SystemExit: goodbye; details are in"),
    ],
)
def test_a_faulty_environment_stops_the_run_and_leaves_a_good_checkpoint(
    fault: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(tmp_path, "--frames", "20K", of=[f"Faulty{fault}-v0", *CARTPOLE[1:]])
    assert train(config) == 1
    err = [line for line in capsys.readouterr().err.splitlines() if "training stopped" in line]
    assert len(err) == 1
    assert message in err[0]
    folder = RunFolder(config.folder)
    assert folder.read_status().state == "failed"
    model = dae.load_run(config.folder).model
    assert all(np.isfinite(p.detach().numpy()).all() for p in model.policy.parameters())


def test_a_signal_on_a_full_disk_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(tmp_path, "--frames", "20K", of=["FaultyCall-v0", *CARTPOLE[1:]])

    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def happen() -> None:
        monkeypatch.setattr(Checkpoints, "save", no_space)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Faulty, "happen", happen)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert train(config) == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    captured = capsys.readouterr()
    assert "the last checkpoint could not be written: [Errno 28] No space left on device" in captured.err
    saved = int(re.search(r"it continues at frame ([\d,]+) with", captured.out)[1].replace(",", ""))  # type: ignore[index]
    assert saved == RunFolder(config.folder).checkpoints.newest_frames() > 0


def test_a_folder_that_is_deleted_meanwhile_ends_the_run_and_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small(tmp_path / "runs", "--frames", "20K", of=["FaultyCall-v0", *CARTPOLE[1:]])
    monkeypatch.setattr(Faulty, "happen", lambda: shutil.rmtree(tmp_path / "runs", ignore_errors=True))
    assert train(config) == 1
    assert "was deleted or moved while this run wrote to it" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_an_environment_that_cannot_be_made_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["FaultyInit-v0", *CARTPOLE[1:], *ALWAYS, "--out", str(tmp_path)]
    assert main(["train", *words]) == 2
    assert "FaultyInit-v0 cannot be made: RuntimeError: no licence" in capsys.readouterr().err
    assert main(["train", "FaultyLeave-v0", *words[1:]]) == 2
    assert "FaultyLeave-v0 cannot be made: SystemExit: goodbye" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:batch_size=:UserWarning")
@pytest.mark.parametrize("actors", ["1", "3"])
def test_unusual_sizes_train(actors: str, tmp_path: Path) -> None:
    """Minibatches that do not divide a rollout, are larger than it, or smaller than a row."""
    for batch_size in ("7", "20", "1000"):
        config = small(tmp_path / batch_size, "--frames", "100", "--actors", actors, "--batch-size", batch_size)
        assert train(config) == 0


class Drawn(Faulty):
    """Actions of more than one dimension, and a picture."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, actions: gym.Space[Any], render_mode: str | None = None) -> None:
        super().__init__("none")
        self.action_space, self.render_mode = actions, render_mode

    def render(self) -> Any:
        return np.zeros((20, 20, 3), np.uint8)


@pytest.mark.parametrize(
    "actions", [gym.spaces.Box(-1, 1, (2,)), gym.spaces.MultiDiscrete([2, 3]), gym.spaces.MultiBinary(2)], ids=str
)
def test_films_show_agents_whose_actions_are_not_single_numbers(
    actions: gym.Space[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gym.register("Drawn-v0", Drawn, kwargs={"actions": actions}, disable_env_checker=True)
    try:
        config = small(
            tmp_path, "--frames", "300", "--pictures", "True", "--advantage", "gae", of=["Drawn-v0", *CARTPOLE[1:]]
        )
        assert train(config) == 0
        assert main(["play", str(config.folder), "--episodes", "1"]) == 0
    finally:
        del gym.registry["Drawn-v0"]
    assert (config.folder / "episode.gif").exists()
    assert capsys.readouterr().err == ""


# Files that mean harm. -----------------------------------------------------------------------------------------------


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_no_file_of_a_run_can_run_code(tmp_path: Path) -> None:
    marker, payload = tmp_path / "marker", pickle.dumps(Bomb(tmp_path / "marker"))
    config = small(tmp_path / "runs", "--frames", "300")
    assert train(config) == 0
    files = [path for path in config.folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts]
    assert len(files) >= 7
    for path in files:
        good = path.read_bytes()
        path.write_bytes(payload)
        for attempt in (lambda: dae.load_run(config.folder).model, lambda: dae.load_run(config.folder).episodes):
            with contextlib.suppress(UserError, ValueError, KeyError):
                attempt()
        main(["runs", str(tmp_path)])
        path.write_bytes(good)
        assert not marker.exists(), path
    assert dae.load_run(config.folder).model.num_timesteps == 384


# Disks. --------------------------------------------------------------------------------------------------------------


def test_a_full_disk_stops_the_run_in_one_line(tmp_path: Path) -> None:
    """A real one: a small file system in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here; tests/runs/test_checkpoints.py simulates a full disk")
    try:
        words = [*BREAKOUT, *ALWAYS, "--frames", "20K", "--out", str(disk)]
        result = subprocess.run([*COMMAND, "train", *words], capture_output=True, text=True, check=False)
        told = [line for line in result.stderr.splitlines() if "No space left on device" in line]
        assert result.returncode == 1, result.stderr
        assert len(told) == 1
        assert "Traceback" not in result.stderr
        (folder,) = (path.parent for path in disk.rglob("config.json"))
        assert dae.load_run(folder).model.num_timesteps > 0, "the last good checkpoint is there"
    finally:
        subprocess.run(["umount", disk], check=True)
