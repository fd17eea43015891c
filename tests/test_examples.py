"""The programs in examples/ run, and are what the README says they are."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import stable_baselines3
from PIL import Image

import dae

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


@pytest.mark.filterwarnings("ignore::tqdm.TqdmExperimentalWarning")
@pytest.mark.parametrize("ppo", [stable_baselines3.PPO, dae.PPO], ids=["stable_baselines3", "dae"])
def test_the_swap_learns_with_either_import(ppo: type, capsys: pytest.CaptureFixture[str]) -> None:
    example = load(EXAMPLES / "sb3_swap.py")
    assert example.train(ppo, total_timesteps=8_192) > 60  # random play scores 22
    assert f"{ppo.__module__}: quarters of its episodes" in capsys.readouterr().out


def test_the_picture_of_the_games_has_a_key_to_all_their_colours(tmp_path: Path) -> None:
    example = load(EXAMPLES / "minatar_pictures.py")
    example.draw(tmp_path / "minatar.png")
    with Image.open(tmp_path / "minatar.png") as written:
        sheet = np.asarray(written.convert("RGB"))
    for place, game in enumerate(example.GAMES):
        picture, colours = example.play(game)
        key = example.key_of(colours)
        assert sorted(", ".join(key.values()).split(", ")) == sorted(name.replace("_", " ") for name in colours)
        cells = {tuple(map(int, colour)) for colour in picture[12::24, 12::24].reshape(-1, 3)}
        assert len(cells - set(key)) == 1, "the background, and nothing else that is not in the key"
        # Below the game, each colour is in the file.
        left = place * (example.GAME + example.GAP) * example.SCALE
        below = sheet[(example.TOP + example.GAME) * example.SCALE :, left : left + 20 * example.SCALE].reshape(-1, 3)
        assert set(key) <= {tuple(map(int, colour)) for colour in np.unique(below, axis=0)}
