"""Environments of one's own, their arguments, and normalisation, from the command line to a loaded run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import VecNormalize

import dae
from dae.agent.settings import falling
from dae.cli import main
from dae.errors import UserError
from dae.experiments.config import parse
from dae.experiments.training.run import train
from tests.experiments.small import ALWAYS, CARTPOLE, small

OWN = ["tests.envs.worlds:Corridor-v0", *CARTPOLE[1:]]


def test_an_environment_of_ones_own_trains_and_is_loaded_only_if_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*OWN, *ALWAYS, "--frames", "600", "--env-kwargs", "length=3", "--out", str(tmp_path)]
    assert main(["train", *words]) == 0
    folder = tmp_path / "Corridor-v0" / "dae-baseline" / "seed-0"
    run = dae.load_run(folder)
    assert run.config.env_options == {"length": 3}
    with pytest.raises(UserError, match=r"imports and runs the module .*: add trust=True if you trust it"):
        run.make_env(2)
    assert dae.load_run(folder, trust=True).make_env(2).get_attr("length") == [3, 3]
    assert main(["train", *words]) == 0  # the keyboard names the module
    capsys.readouterr()
    for words in (
        ["train", "--resume", str(folder)],
        ["train", "--config", str(folder / "config.json")],
        ["play", str(folder)],
    ):
        assert main([*words]) == 2
        message = capsys.readouterr().err
        assert "imports and runs the module 'tests.envs.worlds': add --trust if you trust it" in message
        assert message.count("\n") == 1
    assert main(["train", "--resume", str(folder), "--trust"]) == 0
    assert main(["play", str(folder), "--trust", "--episodes", "2", "--film", "none"]) == 0


def test_a_file_of_settings_cannot_trust_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own.toml"
    file.write_text('env = "tests.envs.worlds:Corridor-v0"\ntrust = true\n')
    assert main(["train", "--config", str(file)]) == 2
    assert "'trust' is not a setting" in capsys.readouterr().err


def test_arguments_of_the_environment_come_from_files_too(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    file.write_text('[env_kwargs]\nis_slippery = false\nmap_name = "8x8"\n')
    config = parse(["FrozenLake-v1", "--config", str(file)])
    assert config.env_options == {"is_slippery": False, "map_name": "8x8"}
    assert parse(["FrozenLake-v1", "--config", str(file), "--env-kwargs", "is_slippery=true"]).env_options == {
        "is_slippery": True
    }


@pytest.mark.parametrize("bad", ["[1]", "{", "3"])
def test_settings_with_other_than_arguments_are_refused(bad: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"settings": {"env": "CartPole-v1", "env_kwargs": bad}}))
    assert main(["train", "--config", str(file), "--out", str(tmp_path / "runs")]) == 2
    assert not (tmp_path / "runs").exists()


def test_a_normalised_run_is_that_of_a_program_with_vec_normalize(tmp_path: Path) -> None:
    normalised = ["--normalize-observations", "True", "--normalize-rewards", "True"]
    config = small(tmp_path, "--frames", "1024", *normalised, of=CARTPOLE)
    assert train(config) == 0
    run = dae.load_run(config.folder)

    torch.set_num_threads(1)
    env = VecNormalize(dae.make_vec_env("CartPole-v1", 4, 0), gamma=config.gamma)
    model = dae.PPO("MlpPolicy", env, seed=0, policy_kwargs={"net_arch": [64, 64]}, **config.arguments(falling))
    model.learn(1024)
    for name, weight in model.policy.state_dict().items():
        assert torch.equal(weight, run.model.policy.state_dict()[name]), name

    playing = run.make_env(3, seed=7)
    raw = dae.make_vec_env("CartPole-v1", 3, 7).reset()
    assert isinstance(env.obs_rms, type(env.ret_rms))
    expected = (raw - env.obs_rms.mean) / np.sqrt(env.obs_rms.var + 1e-8)
    np.testing.assert_allclose(playing.reset(), expected, rtol=1e-6)
    assert playing.step(np.zeros(3, int))[1].tolist() == [1, 1, 1]  # scores are not scaled
    assert set(np.unique(run.episodes.scores)) == set(np.round(np.unique(run.episodes.scores)))


def test_images_are_not_normalised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["MinAtar/Breakout-v1", "--normalize-observations", "True", "--out", str(tmp_path / "runs")]
    assert main(["train", *words]) == 2
    assert "only vectors of real numbers can be normalised" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
