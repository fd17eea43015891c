"""Saved agents: nothing is lost, nothing in them can run, and a failed save leaves the old file."""

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor

import dae
from dae.agent import register
from dae.agent.encoding import REGISTERED, decode, encode
from tests.agent.worlds import Spaces

SMALL = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "seed": 0}


def trained(advantage: str = "dae", **changes: Any) -> dae.PPO:
    return dae.PPO("MlpPolicy", dae.make_vec_env("CartPole-v1", 4), advantage=advantage, **(SMALL | changes)).learn(128)


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_a_loaded_agent_predicts_and_trains_on_as_the_saved_one(advantage: str, tmp_path: Path) -> None:
    model = trained(advantage, policy_kwargs={"net_arch": [32], "activation_fn": torch.nn.ReLU})
    model.save(tmp_path / "agent")
    assert set(zipfile.ZipFile(tmp_path / "agent.zip").namelist()) == {
        "data.json",
        "policy.safetensors",
        "optimizer.safetensors",
    }
    loaded = dae.PPO.load(tmp_path / "agent", env=dae.make_vec_env("CartPole-v1", 4))
    observations = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    np.testing.assert_array_equal(
        model.predict(observations, deterministic=True)[0], loaded.predict(observations, deterministic=True)[0]
    )
    assert loaded.num_timesteps == model.num_timesteps == 128
    assert loaded.policy_kwargs == model.policy_kwargs
    weights = []
    for agent in (model, loaded):
        agent.set_env(dae.make_vec_env("CartPole-v1", 4, seed=7))
        agent.set_random_seed(7)
        agent.learn(128, reset_num_timesteps=False)
        assert agent.num_timesteps == 256
        weights.append(torch.nn.utils.parameters_to_vector(agent.policy.parameters()))
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=0)


def test_streams_and_weights_alone(tmp_path: Path) -> None:
    model, other = trained(seed=0), trained(seed=1)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    other.set_parameters(buffer)
    for mine, theirs in zip(model.policy.parameters(), other.policy.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    other.set_parameters(model.get_parameters())


def test_images_dictionaries_and_registered_extractors(tmp_path: Path) -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 4)
    model = dae.PPO(
        "CnnPolicy", env, n_steps=8, batch_size=8, policy_kwargs={"features_extractor_kwargs": {"width": 0.5}}
    )
    model.save(tmp_path / "cnn.zip")
    loaded = dae.PPO.load(tmp_path / "cnn.zip", env=env)
    observations = env.reset()
    np.testing.assert_array_equal(loaded.advantages(observations).values, model.advantages(observations).values)

    parts = spaces.Dict({"near": spaces.Box(-1, 1, (3,)), "kind": spaces.Discrete(4)})
    model = dae.PPO("MultiInputPolicy", Spaces(parts, spaces.Discrete(2)), n_steps=8, batch_size=8)
    model.save(tmp_path / "dict.zip")
    assert dae.PPO.load(tmp_path / "dict.zip").observation_space == parts

    @register
    class Twice(FlattenExtractor):
        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(observations)

    trained(policy_kwargs={"features_extractor_class": Twice}).save(tmp_path / "twice.zip")
    assert isinstance(dae.PPO.load(tmp_path / "twice.zip").policy.features_extractor, Twice)
    del REGISTERED["Twice"]
    with pytest.raises(ValueError, match="class 'Twice' is not registered here"):
        dae.PPO.load(tmp_path / "twice.zip")


def test_what_is_no_data_is_pickled_apart_and_needs_trust(tmp_path: Path) -> None:
    trained(learning_rate=lambda progress: 1e-3 * progress).save(tmp_path / "agent.zip")
    with pytest.raises(ValueError, match=r"pickled parts \(learning_rate, lr_schedule\).*trust=True"):
        dae.PPO.load(tmp_path / "agent.zip")
    assert dae.PPO.load(tmp_path / "agent.zip", trust=True).lr_schedule(0.5) == 5e-4
    given = {"learning_rate": 1e-3, "lr_schedule": lambda _: 1e-3}
    assert dae.PPO.load(tmp_path / "agent.zip", custom_objects=given).lr_schedule(0.5) == 1e-3
    trained().set_parameters(tmp_path / "agent.zip")


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_a_malicious_file_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    marker, payload = tmp_path / "marker", pickle.dumps(Bomb(tmp_path / "marker"))
    trained().save(tmp_path / "good.zip")
    good = zipfile.ZipFile(tmp_path / "good.zip")
    parts = {name: good.read(name) for name in good.namelist()}
    description = json.loads(parts["data.json"])
    attempts: dict[str, dict[str, bytes]] = {
        "pickled part": parts
        | {"pickled.bin": payload, "data.json": json.dumps(description | {"pickled": ["seed"]}).encode()},
        "undeclared pickled part": parts | {"pickled.bin": payload},
        "weights": parts | {"policy.safetensors": payload},
        "optimizer": parts | {"optimizer.safetensors": payload},
        "description": parts | {"data.json": payload},
        "sb3": {"data": payload, "policy.pth": payload},
        "class": parts
        | {"data.json": json.dumps(description | {"data": {"x": {"@": "class", "with": ["os.system"]}}}).encode()},
        "kind": parts | {"data.json": json.dumps(description | {"data": {"x": {"@": "eval", "with": ["1"]}}}).encode()},
        "newer": parts | {"data.json": json.dumps(description | {"format": 99}).encode()},
        "missing weights": {name: part for name, part in parts.items() if name != "policy.safetensors"},
    }
    for name, content in attempts.items():
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
            for part, data in content.items():
                archive.writestr(part, data)
        if name == "undeclared pickled part":
            dae.PPO.load(tmp_path / "bad.zip")  # it is not looked at
        else:
            with pytest.raises(ValueError, match=r"bad\.zip|not registered|no kind of data"):
                dae.PPO.load(tmp_path / "bad.zip")
        assert not marker.exists(), name
    (tmp_path / "bad.zip").write_bytes(payload)
    with pytest.raises(ValueError, match="damaged or no saved agent"):
        dae.PPO.load(tmp_path / "bad.zip")
    (tmp_path / "bad.zip").write_bytes((tmp_path / "good.zip").read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged or no saved agent"):
        dae.PPO.load(tmp_path / "bad.zip")
    assert not marker.exists()
    with pytest.raises(FileNotFoundError, match="no saved agent at"):
        dae.PPO.load(tmp_path / "nowhere")


def test_a_file_of_sb3_is_named_as_such(tmp_path: Path) -> None:
    stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).save(tmp_path / "theirs")
    with pytest.raises(ValueError, match="looks like one of Stable-Baselines3"):
        dae.PPO.load(tmp_path / "theirs")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    model.save(tmp_path / "agent.zip")
    before = (tmp_path / "agent.zip").read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("No space left on device")))
    with pytest.raises(OSError, match="No space"):
        model.save(tmp_path / "agent.zip")
    assert (tmp_path / "agent.zip").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["agent.zip"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"a": [1, 2.5, "x", True], "b": (1, (2,))},
        np.arange(6, dtype=np.int16).reshape(2, 3),
        spaces.Box(-1, 2, (2, 3), np.float64),
        spaces.Box(0, 1, (2, 3), np.bool_),
        spaces.Discrete(4, start=1),
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiBinary([2, 3]),
        spaces.Dict({"a": spaces.Discrete(2)}),
        torch.nn.ReLU,
    ],
    ids=str,
)
def test_values_survive_json(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(back, value)
        assert back.dtype == value.dtype
    else:
        assert back == value


def test_weights_of_an_sb3_agent_can_be_taken_over() -> None:
    """As docs/agent.md says."""
    theirs = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", seed=4)
    model = trained()
    model.set_parameters({"policy": theirs.policy.state_dict()}, exact_match=False)
    for name, weight in theirs.policy.state_dict().items():
        assert torch.equal(model.policy.state_dict()[name], weight)
