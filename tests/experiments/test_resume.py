"""A run survives whatever stops it: what comes out is, bit for bit, what an undisturbed run gives."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest

import dae
from dae.cli import main
from dae.envs import Family
from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.experiments.training.run import train
from dae.runs import RunFolder
from tests.experiments.small import ALWAYS, BREAKOUT, CARTPOLE, Outcome, outcome, small, weights_hash
from tests.processes import Fork, has_checkpoint, wait_until

COMMAND = [sys.executable, "-m", "dae"]
PIXELS = ["tests.envs.worlds:Pixels-v0", "--preset", "quick", "--actors", "4", "--steps", "64", "--batch-size", "64"]


def in_another_process(config: TrainConfig) -> int:
    return Fork(lambda: train(config)).wait(300)


def killed_at_a_checkpoint(config: TrainConfig) -> None:
    """Train until there is a checkpoint, and kill."""
    process = Fork(lambda: train(config))
    wait_until(lambda: has_checkpoint(RunFolder(config.folder)))
    process.kill()


def killed_until_done(config: TrainConfig, kills: int, slowest: float) -> int:
    """Kill a run again and again at random moments, then let it finish; return how often it was really killed."""
    rng = random.Random(0)
    killed = 0
    for _ in range(kills):
        process = Fork(lambda: train(config))
        time.sleep(rng.uniform(0.0, slowest))
        os.kill(process.pid, signal.SIGKILL)
        if process.wait() == 0:
            break
        killed += 1
    assert in_another_process(config) == 0
    return killed


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (BREAKOUT, ["--advantage", "dae"]),
        (BREAKOUT, ["--advantage", "gae", "--finishing", "True"]),
        (CARTPOLE, ["--advantage", "dae", "--finishing", "True"]),
        (CARTPOLE, ["--advantage", "dae", "--correction", "0.5", "--row-length", "8"]),
        (CARTPOLE, ["--advantage", "gae", "--implementation", "sb3", "--finishing", "True"]),
        (["FrozenLake-v1", *CARTPOLE[1:]], ["--advantage", "indirect", "--env-kwargs", "is_slippery=false"]),
        (CARTPOLE, ["--normalize-observations", "True", "--normalize-rewards", "True", "--finishing", "True"]),
        (PIXELS, ["--normalize-rewards", "True", "--epochs", "1"]),
    ],
    ids=[
        *("breakout-dae", "breakout-gae", "cartpole-dae", "cartpole-corrected", "cartpole-sb3", "frozenlake-indirect"),
        *("cartpole-normalized", "images"),
    ],
)
def test_kills_change_nothing(of: list[str], words: list[str], tmp_path: Path) -> None:
    plain, disturbed = (small(tmp_path / name, "--frames", "3K", *words, of=of) for name in ("plain", "disturbed"))
    assert in_another_process(plain) == 0
    assert killed_until_done(disturbed, kills=6, slowest=0.6) >= 1
    assert outcome(RunFolder(disturbed.folder)) == outcome(RunFolder(plain.folder))


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (BREAKOUT, ["--advantage", "dae"]),
        (BREAKOUT, ["--advantage", "gae", "--finishing", "True"]),
        (CARTPOLE, ["--advantage", "dae", "--correction", "0.5", "--row-length", "8"]),
    ],
    ids=["breakout-dae", "breakout-gae", "cartpole-corrected"],
)
def test_a_run_continues_between_a_rollout_and_its_update(of: list[str], words: list[str], tmp_path: Path) -> None:
    """The update is lost, the rollout is not; once in the middle of a run, once at its end."""
    words = [*words, "--eval-every", "640", "--eval-episodes", "2"]
    plain, lost = (small(tmp_path / name, "--frames", "1200", *words, of=of) for name in ("plain", "lost"))
    assert train(plain) == 0
    process = Fork(lambda: train(lost))
    wait_until(lambda: len(list(lost.folder.glob("checkpoints/*-rollout"))) > 0)
    process.kill()
    for name in (max(path.name for path in lost.folder.glob("checkpoints/*-rollout"))[:12], "000000001280"):
        shutil.rmtree(lost.folder / "checkpoints" / name, ignore_errors=True)
        (lost.folder / "status.json").unlink(missing_ok=True)
        assert in_another_process(lost) == 0
        assert outcome(RunFolder(lost.folder)) == outcome(RunFolder(plain.folder))
        evaluations = [RunFolder(config.folder).read_evaluations() for config in (plain, lost)]
        assert evaluations[0].scores.tolist() == evaluations[1].scores.tolist()
        assert evaluations[0].frames.tolist() == [640, 1280]


def test_images_of_environments_that_cannot_be_restored_are_seen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Family, "can_be_restored", lambda *_, **__: False)
    config = small(tmp_path, "--frames", "1K", "--epochs", "1", of=PIXELS)
    killed_at_a_checkpoint(config)
    assert train(config) == 0
    assert "cannot be restored exactly: its episodes start again" in capsys.readouterr().err


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(tmp_path: Path) -> None:
    plain, disturbed = (small(tmp_path / name, "--frames", "150K") for name in ("plain", "disturbed"))
    assert in_another_process(plain) == 0
    assert killed_until_done(disturbed, kills=100, slowest=1.5) == 100
    assert outcome(RunFolder(disturbed.folder)) == outcome(RunFolder(plain.folder))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    config = small(tmp_path_factory.mktemp("plain"), "--frames", "6K")
    assert in_another_process(config) == 0
    return outcome(RunFolder(config.folder))


@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGTERM], 143), ([signal.SIGINT], 130), ([signal.SIGTERM, signal.SIGTERM], 143)],
    ids=["SIGTERM", "SIGINT", "twice"],
)
def test_a_signal_leaves_a_run_that_goes_on_exactly(
    signals: list[int], code: int, tmp_path: Path, undisturbed: Outcome
) -> None:
    stopped = small(tmp_path / "stopped", "--frames", "6K")
    words = [*BREAKOUT, *ALWAYS[:-2], "--out", str(tmp_path / "stopped"), "--frames", "6K"]
    process = subprocess.Popen([*COMMAND, "train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until((stopped.folder / "status.json").exists)
    time.sleep(0.3)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.01)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert all(line.startswith(("dae: preparing", "dae: ready")) for line in err.splitlines()), err
    assert re.search(r"it continues at frame [\d,]+ with: dae train --resume", out)
    assert RunFolder(stopped.folder).read_status().state == "stopped"
    assert in_another_process(stopped) == 0
    assert outcome(RunFolder(stopped.folder)) == undisturbed


def test_a_run_is_finished_before_its_pictures_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], undisturbed: Outcome
) -> None:
    """A signal while they are drawn leaves them for the next time, an error is announced; the run is finished."""
    config = small(tmp_path, "--frames", "6K", "--pictures", "True")
    with monkeypatch.context() as patch:
        patch.setattr("dae.experiments.training.run.draw_pictures", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        assert in_another_process(config) == 143
    assert outcome(RunFolder(config.folder)) == undisturbed
    assert not (config.folder / "learning_curve.png").exists()
    with monkeypatch.context() as patch:
        patch.setattr("dae.experiments.training.summary.draw_learning_curve", lambda *_: 1 / 0)
        assert train(config) == 0
    captured = capsys.readouterr()
    assert "is finished already" in captured.out
    assert "the pictures could not be drawn (ZeroDivisionError: division by zero); details: " in captured.err
    assert "draw_learning_curve" in (config.folder / "error.txt").read_text()
    assert train(config) == 0
    assert (config.folder / "learning_curve.png").exists()
    assert (config.folder / "episode.gif").exists()
    assert outcome(RunFolder(config.folder)) == undisturbed


def test_the_same_command_twice_at_once_is_refused(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "100K")
    words = [*BREAKOUT, *ALWAYS, "--out", str(tmp_path), "--frames", "100K"]
    first = subprocess.Popen([*COMMAND, "train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until((config.folder / "status.json").exists)
    second = subprocess.run([*COMMAND, "train", *words], capture_output=True, text=True, check=False, timeout=60)
    first.kill()
    first.communicate(timeout=60)
    assert second.returncode == 75
    told = [line for line in second.stderr.splitlines() if not line.startswith(("dae: preparing", "dae: ready"))]
    assert len(told) == 1
    assert f"in use by another process (process {first.pid})" in told[0]


def test_a_finished_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, "--frames", "500")
    assert train(config) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train(config) == 0
    assert "is finished already" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_moved_run_with_an_unusual_name_goes_on(tmp_path: Path) -> None:
    config = small(tmp_path / "zuerst", "--frames", "2K")
    killed_at_a_checkpoint(config)
    folder = tmp_path / "später 漢字 with spaces"
    shutil.move(config.folder, folder)
    assert main(["train", "--resume", str(folder), *ALWAYS[-4:]]) == 0
    assert RunFolder(folder).read_status().state == "finished"
    assert train(config) == 0, "the old place starts anew"
    assert weights_hash(RunFolder(config.folder)) == weights_hash(RunFolder(folder))


def test_damage_is_announced_and_the_checkpoint_before_it_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, damaged = (small(tmp_path / name, "--frames", "3K") for name in ("plain", "damaged"))
    assert train(plain) == 0
    assert train(damaged) == 0
    (damaged.folder / "status.json").unlink()  # as if it had been killed just before it was done
    newest = damaged.folder / "checkpoints" / "000000003072"
    (newest / "agent.zip").write_bytes(b"\x80\x04not weights")
    capsys.readouterr()
    assert train(damaged) == 0
    captured = capsys.readouterr()
    assert f"checkpoint {newest} cannot be used" in captured.err
    assert outcome(RunFolder(damaged.folder)) == outcome(RunFolder(plain.folder))
    (damaged.folder / "status.json").unlink()
    for checkpoint in (damaged.folder / "checkpoints").iterdir():
        (checkpoint / "state.json").unlink()
    with pytest.raises(UserError, match=r"no checkpoint in .* can be used"):
        train(damaged)


def test_who_loads_a_run_is_told_of_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, "--frames", "500")
    assert train(config) == 0
    capsys.readouterr()
    assert dae.load_run(config.folder).model.num_timesteps == 512
    assert capsys.readouterr().err == ""
    newest = config.folder / "checkpoints" / "000000000512"
    (newest / "agent.zip").write_bytes(b"torn")
    assert dae.load_run(config.folder).model._n_updates == 3 * 2  # before the last update
    assert f"dae: checkpoint {newest} cannot be used (agent.zip" in capsys.readouterr().err


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    mine, foreign = small(tmp_path / "a", "--frames", "1K"), small(tmp_path / "b", "--frames", "1K", "--gamma", "0.9")
    for config in (mine, foreign):
        assert train(config) == 0
    (mine.folder / "status.json").unlink()
    shutil.rmtree(mine.folder / "checkpoints")
    shutil.copytree(foreign.folder / "checkpoints", mine.folder / "checkpoints")
    with pytest.raises(UserError, match=r"gamma is 0\.9 there and 0\.99 here"):
        train(mine)


class Hidden(gym.Env):
    """An environment whose state no one can read."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.secret = object()

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[object, dict[str, object]]:
        super().reset(seed=seed)
        self.time = 0
        return self.observation_space.sample() * 0, {}

    def step(self, action: int) -> tuple[object, float, bool, bool, dict[str, object]]:
        self.time += 1
        return self.observation_space.sample() * 0, 1.0, self.time == 5, False, {}


gym.register("Hidden-v0", Hidden)


def test_what_cannot_be_restored_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(tmp_path, "--frames", "2K", of=["Hidden-v0", *CARTPOLE[1:]])
    killed_at_a_checkpoint(config)
    assert train(config) == 0
    captured = capsys.readouterr()
    assert "a resume will not be exact" in captured.out
    assert "Hidden-v0 cannot be restored exactly: its episodes start again" in captured.err
    lengths = RunFolder(config.folder).read_episodes().lengths
    assert (lengths == 5).all(), "episodes that were under way are not scored"


def test_the_frozen_policy_plays_until_its_episodes_hold_all_frames(tmp_path: Path) -> None:
    config = small(tmp_path, "--frames", "1K", "--finishing", "True")
    assert train(config) == 0
    episodes = RunFolder(config.folder).read_episodes()
    assert episodes.lengths.sum() >= 1000
    assert episodes.lengths[:-8].sum() < 1000, "it stops when they do"
    without = small(tmp_path / "without", "--frames", "1K")
    assert train(without) == 0
    assert weights_hash(RunFolder(config.folder)) == weights_hash(RunFolder(without.folder))


def test_the_limit_of_the_finishing_phase_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endless = {"reward_threshold": None, "max_episode_steps": 10**9}
    gym.register("Endless-v0", "gymnasium.envs.classic_control:PendulumEnv", **endless)
    words = ["Endless-v0", "--advantage", "gae", *CARTPOLE[1:], "--finishing", "True"]
    assert train(small(tmp_path, "--frames", "300", of=words)) == 0
    assert "ended after 300 more frames, its limit: completed episodes hold 0 of 300 frames" in capsys.readouterr().out


@pytest.mark.slow
def test_memory_stays_flat(tmp_path: Path) -> None:
    code = """
import resource, sys
from tests.experiments.small import small
from dae.experiments.training.run import train
from pathlib import Path
peaks = []
for frames in ("10K", "80K"):
    train(small(Path(sys.argv[1]) / frames, "--frames", frames))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(peaks[1] - peaks[0])
"""
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert float(result.stdout.splitlines()[-1]) < 30, "MB"
