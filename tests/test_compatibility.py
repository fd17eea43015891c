"""What an earlier version wrote is read, resumed and reported by this one."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dae
from dae.cli import main
from dae.experiments.config import parse
from dae.runs import RunFolder, State

DATA = Path(__file__).parent / "data"


@pytest.fixture
def old_run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "run-9b18a82", tmp_path / "runs" / "old"))


def test_an_agent_of_an_earlier_version_is_the_same_agent() -> None:
    model = dae.PPO.load(DATA / "agent-9b18a82.zip", env=dae.make_vec_env("CartPole-v1", 1))
    advantages, values, probabilities = model.advantages(np.zeros((1, 4), np.float32))
    np.testing.assert_allclose(advantages, [[0.00127677, -0.0012826]], rtol=1e-4)
    np.testing.assert_allclose(values, [0.00545598], rtol=1e-4)
    np.testing.assert_allclose(probabilities, [[0.5011386, 0.49886134]], rtol=1e-5)
    assert (model.advantage, model.kl_coef, model.n_steps, model.num_timesteps) == ("dae", 0.5, 16, 64)
    model.learn(64)


def resumed(folder: Path) -> RunFolder:
    assert main(["train", "--resume", str(folder), "--pictures", "False", "--threads", "1"]) == 0
    assert RunFolder(folder).read_status().state is State.FINISHED
    return RunFolder(folder)


def test_a_run_of_an_earlier_version_is_listed_resumed_and_reported(
    old_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", str(tmp_path)]) == 0
    assert "stopped  96/320" in capsys.readouterr().out
    folder = resumed(old_run)
    assert "continuing at 96 frames" in capsys.readouterr().out
    assert folder.read_status().frames == 320
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "report")]) == 0
    assert "1 run in 1 group of seeds" in capsys.readouterr().out


def test_the_command_of_an_earlier_version_has_the_same_settings(old_run: Path) -> None:
    """Otherwise it would be refused where it should continue, and not be averaged with newer seeds."""
    stored = json.loads((old_run / "config.json").read_text())["settings"]
    sizes = ["--frames", "320", "--actors", "2", "--steps", "16", "--batch-size", "32", "--epochs", "1"]
    now = parse(["CartPole-v1", "--advantage", "indirect", "--preset", "quick", *sizes]).to_json()
    assert {name: now[name] for name in stored} == stored


def test_a_run_that_began_before_a_setting_existed_is_resumed(old_run: Path) -> None:
    """As if `bootstrap_truncations` had come later: the files do not name it, and its default is what runs did."""
    config = json.loads((old_run / "config.json").read_text())
    del config["settings"]["bootstrap_truncations"]
    (old_run / "config.json").write_text(json.dumps(config))
    (checkpoint,) = (old_run / "checkpoints").iterdir()
    state = json.loads((checkpoint / "state.json").read_text())
    del state["settings"]["bootstrap_truncations"]
    rewrite(checkpoint, "state.json", json.dumps(state).encode())
    resumed(old_run)


def rewrite(checkpoint: Path, name: str, content: bytes) -> None:
    """Replace a part of a checkpoint, and what the manifest says of it."""
    (checkpoint / name).write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))
