"""The programs in examples/ run, and are what the README says they are."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("env_id", ["CartPole-v1", "MinAtar/Breakout-v1"])
def test_the_self_contained_file_trains(env_id: str) -> None:
    example = load(EXAMPLES / "cleanrl_style.py")
    args = example.Args(env_id=env_id, n_envs=5, n_steps=32, rows=2, total_frames=5 * 32 * 6)
    score = example.train(args)
    assert np.isfinite(score)
    assert example.train(args) == score, "a seed repeats the run"


def test_the_self_contained_file_learns() -> None:
    example = load(EXAMPLES / "cleanrl_style.py")
    assert example.train(example.Args(total_frames=40_000)) > 100  # random play scores 22


def test_the_self_contained_file_uses_the_two_functions_alone() -> None:
    source = (EXAMPLES / "cleanrl_style.py").read_text()
    assert set(re.findall(r"\bdae\.(\w+)\(", source)) == {"center", "dae_loss"}
    assert "stable_baselines3" not in source
    assert source.count("\n") < 220


@pytest.mark.filterwarnings("ignore::tqdm.TqdmExperimentalWarning", "ignore:.*covers one rollout:UserWarning")
def test_the_swap_is_one_line(tmp_path: Path) -> None:
    source = (EXAMPLES / "sb3_swap.py").read_text()
    (changed,) = [line for line in source.splitlines() if re.search(r"\bdae\b", line)]
    theirs = changed.partition("  # ")[2]
    assert theirs == "from stable_baselines3 import PPO"
    (tmp_path / "before.py").write_text(source.replace(changed, theirs))
    (tmp_path / "after.py").write_text(source)
    for name in ("before.py", "after.py"):
        assert load(tmp_path / name).train(total_timesteps=32 * 128) > 10
