"""Saved agents: nothing is lost, nothing in them can run, and a failed save leaves the old file."""

import contextlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor

import dae
from dae.agent import register
from dae.agent.agent_file import AgentFile
from dae.agent.encoding import REGISTERED
from dae.errors import InvalidValue
from dae.serialization import BadData, decode, encode
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
    model = trained(learning_rate=lambda progress: 1e-3 * progress)
    model.callback = print  # a user's own attribute
    with pytest.warns(UserWarning, match="the saved agent has pickled parts") as warned:
        model.save(tmp_path / "agent.zip")
    assert [str(warning.message) for warning in warned] == [
        "the saved agent has pickled parts (callback, learning_rate), so that PPO.load needs trust=True: to avoid it, "
        "use a number or stable_baselines3.common.utils.LinearSchedule as learning_rate; "
        "save(..., exclude=['callback'])"
    ]
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match=r"parts \(learning_rate\)"):
        model.save(tmp_path / "agent.zip", exclude=["callback"])
    with pytest.raises(ValueError, match=r"pickled parts \(learning_rate\).*trust=True"):
        dae.PPO.load(tmp_path / "agent.zip")
    assert dae.PPO.load(tmp_path / "agent.zip", trust=True).lr_schedule(0.5) == 5e-4
    given = {"learning_rate": 1e-3, "lr_schedule": lambda _: 1e-3}
    assert dae.PPO.load(tmp_path / "agent.zip", custom_objects=given).lr_schedule(0.5) == 1e-3
    loaded = dae.PPO.load(tmp_path / "agent.zip", custom_objects=given | {"unheard_of": 1})
    assert not hasattr(loaded, "unheard_of"), "custom objects replace what the file has, and add nothing"
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
            with pytest.raises(ValueError, match=r"bad\.zip|not registered|not a kind of data"):
                dae.PPO.load(tmp_path / "bad.zip")
        assert not marker.exists(), name
    (tmp_path / "bad.zip").write_bytes(payload)
    with pytest.raises(ValueError, match="damaged or not a saved agent"):
        dae.PPO.load(tmp_path / "bad.zip")
    (tmp_path / "bad.zip").write_bytes((tmp_path / "good.zip").read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged or not a saved agent"):
        dae.PPO.load(tmp_path / "bad.zip")
    assert not marker.exists()
    with pytest.raises(FileNotFoundError, match="no saved agent at"):
        dae.PPO.load(tmp_path / "nowhere")


def test_a_file_of_sb3_is_named_as_such(tmp_path: Path) -> None:
    stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).save(tmp_path / "theirs")
    with pytest.raises(ValueError, match="looks like a Stable-Baselines3 file"):
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
        spaces.MultiBinary(4),
        spaces.Discrete(4, dtype=np.int32),
        spaces.MultiDiscrete([3, 4], dtype=np.int32, start=[1, 2]),
        spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Discrete(3))]),
        {0: {1: [(1.0, 2, True)]}},
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


@pytest.mark.parametrize("outer", [lambda inner: [inner], lambda inner: {"@": "tuple", "with": [inner]}])
def test_what_is_nested_too_deeply_is_no_data(outer: Any) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = outer(deep)
    with pytest.raises(BadData, match="it is nested too deeply"):
        decode(deep)


def test_weights_of_an_sb3_agent_can_be_taken_over() -> None:
    """As docs/agent.md says."""
    theirs = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", seed=4)
    model = trained()
    model.set_parameters({"policy": theirs.policy.state_dict()}, exact_match=False)
    for name, weight in theirs.policy.state_dict().items():
        assert torch.equal(model.policy.state_dict()[name], weight)


def rewritten(tmp_path: Path, change: Any, **options: Any) -> Path:
    """A saved agent with one part or setting changed."""
    trained(**options).save(tmp_path / "good.zip")
    good = zipfile.ZipFile(tmp_path / "good.zip")
    parts = {name: good.read(name) for name in good.namelist()}
    description = json.loads(parts["data.json"])
    change(description, parts)
    parts["data.json"] = json.dumps(description).encode() if isinstance(description, dict) else b"[]"
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return tmp_path / "bad.zip"


def with_nan(part: bytes) -> bytes:
    tensors = safetensors.torch.load(part)
    max(tensors.values(), key=torch.numel).view(-1)[0] = float("nan")
    return safetensors.torch.save(tensors)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, _: d["data"].update(predict=5),
        lambda d, _: d["data"].update(set_parameters={"@": "class", "with": ["Identity"]}),
        lambda d, _: d["data"].update(num_timesteps="x"),
        lambda d, _: d["data"].update(num_timesteps={"@": "class", "with": ["Identity"]}),
        lambda d, _: d["data"].update(use_sde={"@": "class", "with": ["Identity"]}),
        lambda d, _: d["data"].update(n_steps=10**13),
        lambda d, _: d["data"].update(policy_kwargs=3),
        lambda d, _: d["data"].update(observation_space=[1]),
        lambda d, _: d["data"].update(action_space=None),
        lambda d, _: d["data"].update(policy_class="MlpPolicy"),
        lambda d, _: d["data"].update(policy_class={"@": "class", "with": ["Adam"]}),
        lambda d, _: d["data"].update(seed="x"),
        lambda d, _: d["data"].update(verbose=None),
        lambda d, _: d["data"].update(gamma=[1]),
        lambda d, _: d["data"].update(use_sde=3.5),
        lambda d, _: d.update(optimizer_groups=[{}]),
        lambda d, _: d.update(estimator_options={"unknown": 1}),
        lambda d, _: d["data"].update(x={"@": [1]}),
        lambda d, _: d["data"].update(x={"@": "class", "with": []}),
        lambda d, _: d["data"].update(x={"@": "array", "with": ["O", [1], ""]}),
        lambda d, _: d["data"].pop("policy_class"),
        lambda d, _: d["data"].pop("observation_space"),
        lambda d, _: d.pop("aliases"),
        lambda d, _: d.pop("data"),
        lambda d, _: d.update(format="1"),
        lambda d, _: d.update(data=None),
        lambda d, _: d["optimizer_groups"][0].update(params=[0]) or d["optimizer_groups"].append({"params": [5]}),
        lambda d, _: d["data"].update(tensorboard_log="/tmp/elsewhere"),
        lambda d, _: d["data"].pop("gamma"),
        lambda d, _: d["data"].pop("clip_range_vf"),
        lambda d, _: d["data"].update(learning_rate={"with": [0.002, 0.0, 1.0]}),
        lambda d, _: d["data"].update(n_envs=2**40),
        lambda d, _: d["data"].update(_stats_window_size=-1),
        lambda d, _: d["data"].update(policy_kwargs={"net_arch": [2**20, 2**20]}),
        lambda d, _: d["data"].update(policy_kwargs={"net_arch": [64] * 1_000_000}),
        lambda d, _: d["data"].update(policy_kwargs={"net_arch": {"pi": [64] * 1_000_000}}),
        lambda d, _: d["data"].update(policy_kwargs={"net_arch": 5}),
        lambda d, _: d["data"].update(policy_kwargs={"net_arch": ["x"]}),
        lambda d, _: d["data"].update(policy_kwargs={"unknown": 1}),
        lambda d, _: d["data"].update(policy_kwargs={"optimizer_kwargs": {"betas": 3}}),
        lambda d, _: d["data"].update(policy_kwargs={"activation_fn": {"@": "class", "with": ["Adam"]}}),
        lambda d, _: d["data"].update(
            policy_kwargs={"features_extractor_class": {"@": "class", "with": ["NatureCNN"]}}
        ),
        lambda d, _: d["data"].update(observation_space={"@": "discrete", "with": [2**40, 0, "<i8"]}),
        lambda d, _: d["data"].update(action_space={"@": "discrete", "with": [2**40, 0, "<i8"]}),
        lambda _, parts: parts.update({"policy.safetensors": with_nan(parts["policy.safetensors"])}),
        lambda _, parts: parts.update({"optimizer.safetensors": with_nan(parts["optimizer.safetensors"])}),
    ],
)
@pytest.mark.timeout(60)
def test_a_crafted_description_gets_one_line(change: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]*\Z"):
        dae.PPO.load(rewritten(tmp_path, change))


def test_a_setting_that_was_not_saved_can_be_passed(tmp_path: Path) -> None:
    model = trained()
    model.save(tmp_path / "agent.zip", exclude=["gamma"])
    with pytest.raises(ValueError, match=r"its setting gamma is missing: pass it, PPO.load\(..., gamma=...\)"):
        dae.PPO.load(tmp_path / "agent.zip")
    assert dae.PPO.load(tmp_path / "agent.zip", gamma=0.5).gamma == 0.5


def test_every_damage_to_a_zip_is_one_line(tmp_path: Path) -> None:
    """Each byte of the archive's own records, changed in turn."""
    trained().save(tmp_path / "good.zip")
    content = (tmp_path / "good.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        headers = [part.header_offset for part in archive.infolist()]
    records = {*range(archive.start_dir, len(content)), *(start + k for start in headers for k in range(30))}
    refused = 0
    for place in sorted(records):
        for changed in (content[place] ^ 0xFF, content[place] ^ 1):
            damaged = content[:place] + bytes([changed]) + content[place + 1 :]
            with contextlib.suppress(InvalidValue):  # which is one line, whatever its cause
                AgentFile(io.BytesIO(damaged))
                continue
            refused += 1
    assert refused > len(records) / 2


@pytest.mark.parametrize("moment", [torch.zeros(1), torch.zeros((), dtype=torch.float64)], ids=["shape", "dtype"])
def test_an_optimizer_that_does_not_fit_is_refused(moment: torch.Tensor, tmp_path: Path) -> None:
    """Fused kernels believe the shapes they are told and would write beyond the end."""

    def change(_: Any, parts: dict[str, bytes]) -> None:
        moments = safetensors.torch.load(parts["optimizer.safetensors"])
        wrong = {name: tensor if name.endswith("step") else moment.clone() for name, tensor in moments.items()}
        parts["optimizer.safetensors"] = safetensors.torch.save(wrong)

    with pytest.raises(ValueError, match="optimizer's state belongs to another network"):
        dae.PPO.load(rewritten(tmp_path, change))
    small, large = (trained(policy_kwargs={"net_arch": [n]}) for n in (4, 8))
    with pytest.raises(ValueError, match="optimizer's state belongs to another network"):
        large.set_parameters({"policy.optimizer": small.get_parameters()["policy.optimizer"]}, exact_match=False)


def test_parameters_of_an_sb3_agent_train_on() -> None:
    theirs = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, seed=4).learn(16)
    model = dae.PPO("MlpPolicy", "CartPole-v1", advantage="gae", n_steps=16, batch_size=16)
    model.set_parameters(theirs.get_parameters())
    model.learn(32)


def test_compressed_parts_are_refused(tmp_path: Path) -> None:
    """They could be a thousand times larger than the file."""
    trained().save(tmp_path / "agent.zip")
    with zipfile.ZipFile(tmp_path / "agent.zip", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pickled.bin", bytes(10**6))
    with pytest.raises(ValueError, match="parts are compressed"):
        dae.PPO.load(tmp_path / "agent.zip")


def test_the_order_of_a_dictionary_of_observations_survives(tmp_path: Path) -> None:
    space = spaces.Dict([("z", spaces.Box(-1, 1, (2,))), ("a", spaces.Box(-1, 1, (2,)))])
    model = dae.PPO("MultiInputPolicy", Spaces(space, spaces.Discrete(2)), n_steps=16, batch_size=16)
    model.save(tmp_path / "agent.zip")
    loaded = dae.PPO.load(tmp_path / "agent.zip", env=Spaces(space, spaces.Discrete(2)))
    observation = {"z": np.ones((1, 2), np.float32), "a": np.zeros((1, 2), np.float32)}
    np.testing.assert_array_equal(loaded.advantages(observation).values, model.advantages(observation).values)
