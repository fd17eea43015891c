"""`--track`: what reaches Weights & Biases, read from its own files, and that nothing of it can stop a run."""

import importlib.util
import json
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dae.agent import PPO
from dae.cli import main
from dae.experiments.sweep.config import SweepConfig, planned_runs
from dae.experiments.training.callback import TrainingCallback
from dae.experiments.training.run import train
from dae.experiments.training.tracking import WandbWriter
from dae.runs import RunFolder
from dae.runs.folder import find_runs
from tests.experiments.small import ALWAYS, CARTPOLE, outcome, small

wandb = pytest.importorskip("wandb")
from wandb.proto.wandb_internal_pb2 import Record  # noqa: E402


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep wandb to itself: no network, no account, a home and a working folder in which nothing may appear."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    yield
    wandb.teardown()
    assert not (tmp_path / "home").exists()
    assert not list((tmp_path / "cwd").iterdir())


def records(folder: RunFolder) -> list[list[Any]]:
    """The records of each part of a run that was written offline, in the format of LevelDB's logs."""
    wandb.teardown()  # its service may still be writing, as it does until a program ends
    parts = []
    for path in sorted(folder.wandb.glob("offline-run-*/*.wandb")):
        content, at, whole, found = path.read_bytes(), 7, b"", []
        while at + 7 <= len(content):
            if 32768 - at % 32768 < 7:
                at += 32768 - at % 32768
            _, size, kind = struct.unpack_from("<IHB", content, at)
            whole += content[at + 7 : at + 7 + size]
            at += 7 + size
            if kind in (1, 4):  # whole, or the last of several
                found.append(Record.FromString(whole))
                whole = b""
        parts.append(found)
    return parts


def history(part: list[Any]) -> dict[int, dict[str, Any]]:
    rows = [record.history for record in part if record.WhichOneof("record_type") == "history"]
    items = [{item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in row.item} for row in rows]
    return {row.step.num: item for row, item in zip(rows, items, strict=True)}


def ended(part: list[Any]) -> tuple[int, str]:
    """The exit code, and the state in the summary."""
    codes = [record.exit.exit_code for record in part if record.WhichOneof("record_type") == "exit"]
    states = [item.value_json for record in part for item in record.summary.update if item.key == "state"]
    return codes[-1], json.loads(states[-1])


def test_a_run_is_tracked_through_a_stop_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = small(tmp_path / "plain", "--frames", "600", "--track", "none", of=CARTPOLE)
    assert train(plain) == 0
    assert not (plain.folder / "tensorboard").exists()
    assert "tensorboard" not in capsys.readouterr().out

    config = small(tmp_path / "tracked", "--frames", "600", "--track", "wandb", of=CARTPOLE)
    folder = RunFolder(config.folder)
    with monkeypatch.context() as patch:
        after = TrainingCallback._on_rollout_end

        def stop(self: TrainingCallback) -> None:
            after(self)
            if self.num_timesteps == 384:
                os.kill(os.getpid(), signal.SIGTERM)

        patch.setattr(TrainingCallback, "_on_rollout_end", stop)
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        assert train(config) == 143
        for number, handler in before.items():  # a stopped process ignores them
            signal.signal(number, handler)
    assert f"dae train --resume {config.folder} --track wandb" in capsys.readouterr().out
    assert train(config) == 0
    output = capsys.readouterr()
    assert "wandb" not in output.out + output.err

    assert outcome(folder) == outcome(RunFolder(plain.folder)), "tracking changes no number"
    first, second = records(folder)
    for part in (first, second):
        (run,) = [record.run for record in part if record.WhichOneof("record_type") == "run"]
        assert (run.run_id, run.project) == ((folder.wandb / "id").read_text().strip(), "dae")
        assert (run.display_name, run.run_group) == ("CartPole-v1/dae-baseline/seed-0", "CartPole-v1/dae-baseline")
        settings = {item.key: json.loads(item.value_json) for item in run.config.update if item.key != "_wandb"}
        assert settings == json.loads(json.dumps(config.to_json()))
    assert (ended(first), ended(second)) == ((255, "stopped"), (0, "finished"))
    logged = history(first) | history(second)
    events = EventAccumulator(str(folder.tensorboard)).Reload()
    for tag in events.Tags()["scalars"]:
        in_events = {event.step: pytest.approx(event.value, nan_ok=True) for event in events.Scalars(tag)}
        assert {step: row[tag] for step, row in logged.items() if tag in row} == in_events
    assert {"train/loss", "rollout/ep_rew_mean", "time/fps"} <= set(logged[640])

    (folder.wandb / "copy").mkdir()
    (folder.wandb / "copy" / "config.json").write_text("{}")
    assert [found.path for found in find_runs([tmp_path / "tracked"])] == [config.folder]


def test_without_an_account_a_run_is_tracked_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It also fails, which its record says."""
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(PPO, "_log_update", lambda *_: 1 / 0)
    config = small(tmp_path, "--frames", "256", "--track", "wandb", of=CARTPOLE)
    assert train(config) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0] == (
        "dae: Weights & Biases: you are not logged in (wandb login); the run is tracked offline, to be sent later "
        f"with: wandb sync {config.folder}/wandb/offline-run-*"
    )
    assert len(told) == 2
    assert [ended(part) for part in records(RunFolder(config.folder))] == [(1, "failed")]


def test_a_run_goes_on_without_a_service_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("no service\nhere")

    monkeypatch.setattr(wandb, "init", broken)
    config = small(tmp_path, "--frames", "256", "--track", "wandb", of=CARTPOLE)
    assert train(config) == 0
    line = "dae: Weights & Biases: RuntimeError: no service here; the run goes on without it"
    assert capsys.readouterr().err.splitlines() == [line]
    assert list((config.folder / "tensorboard").iterdir())


class Service:
    """What a run of wandb is to the writer."""

    def __init__(self, step: int, most: int = 100) -> None:
        self.step, self.most, self.rows = step, most, list[Any]()

    def log(self, numbers: dict[str, float], step: int) -> None:
        if len(self.rows) == self.most:
            raise OSError("the service has ended")
        self.rows.append((step, numbers))
        self.step = step


def test_steps_that_were_sent_before_a_kill_are_not_sent_again() -> None:
    service = Service(step=256)
    for step in (128, 256, 384):
        WandbWriter(service).write({"a": step, "name": "text", "hidden": 1}, {"hidden": ("tensorboard",)}, step)
    assert service.rows == [(256, {"a": 256.0}), (384, {"a": 384.0})]


def test_a_service_that_ends_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    writer = WandbWriter(Service(step=0, most=1))
    for step in (1, 2, 3):
        writer.write({"a": step}, {}, step)
    assert capsys.readouterr().err == (
        "dae: Weights & Biases: the service has ended; from frame 2 on nothing is sent to it\n"
    )


def test_what_is_not_installed_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["train", *CARTPOLE, *ALWAYS, "--out", str(tmp_path / "runs"), "--track", "wandb"]) == 2
    sweep = ["sweep", "--envs", "CartPole-v1", "--settings", "track=wandb", "--out", str(tmp_path / "runs")]
    assert main(sweep) == 2
    line = "dae: track is 'wandb', which is not installed: pip install 'dae-rl[track]', or use tensorboard"
    assert capsys.readouterr().err.splitlines() == [line] * 2
    assert not (tmp_path / "runs").exists()


def test_a_sweep_passes_it_on() -> None:
    (dae_run, gae_run) = planned_runs(SweepConfig(envs=("CartPole-v1",), settings=("track=wandb",)))
    assert dae_run.config.track == gae_run.config.track == "wandb"
    assert "--track=wandb" in dae_run.words
