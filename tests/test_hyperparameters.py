"""A setting of PPO has one home: argument, command line, check, file and report follow from it."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest
import stable_baselines3

import dae
from dae.agent.settings import falling
from dae.errors import InvalidValue
from dae.experiments.config import parse
from dae.hyperparameters import Hyperparameters, PPOOptions, argument_of
from dae.rules import check_fields
from dae.runs import RunSettings
from dae.runs.settings import SETTING_NAMES
from dae.terminal.options import option_name

SETTINGS = {field.name: field for field in dataclasses.fields(Hyperparameters)}
OURS = {field.name: field for field in dataclasses.fields(PPOOptions)}
OTHER_VALUES = {
    "correction": 0.25,
    "row_length": 32,
    "minibatches": "segments",
    "drop_last": True,
    "kl_coef": 0.5,
    "bootstrap_truncations": False,
    "torch_compile": True,
}


@pytest.mark.parametrize("name", OURS)
def test_an_option_of_ours_is_an_argument_an_attribute_and_part_of_a_file(name: str, tmp_path: Path) -> None:
    value = OTHER_VALUES[name]
    needed = {"minibatches": "segments"} if name == "drop_last" else {}
    model = dae.PPO("MlpPolicy", "CartPole-v1", **{name: value}, **needed)
    assert getattr(model, name) == getattr(model.options, name) == value
    model.save(tmp_path / "agent.zip")
    assert getattr(dae.PPO.load(tmp_path / "agent.zip").options, name) == value
    with pytest.raises(InvalidValue, match=f"{name} is 'x': it must be"):
        dae.PPO("MlpPolicy", "CartPole-v1", **{name: "x"}, **needed)


@pytest.mark.parametrize("name", OURS)
def test_an_option_of_ours_is_an_option_of_the_command_and_part_of_a_run(name: str) -> None:
    config = parse(["CartPole-v1", option_name(name), str(OTHER_VALUES[name])])
    assert config.to_json()[name] == OTHER_VALUES[name]
    assert config.arguments(falling)[name] == OTHER_VALUES[name]


def test_the_defaults_of_sb3_are_its_own() -> None:
    theirs = inspect.signature(stable_baselines3.PPO).parameters
    for name, field in SETTINGS.items():
        if name not in OURS and name != "anneal":
            assert field.metadata["sb3"] == theirs[argument_of(field)].default, name


def test_all_other_settings_are_arguments_of_sb3_under_its_names() -> None:
    theirs = set(inspect.signature(stable_baselines3.PPO).parameters)
    assert {argument_of(field) for name, field in SETTINGS.items() if name not in OURS} - {"anneal"} <= theirs


def test_every_setting_of_a_run_is_a_setting_once() -> None:
    assert len(SETTING_NAMES) == len(set(SETTING_NAMES))
    assert set(SETTINGS) < set(SETTING_NAMES)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_value_that_breaks_the_rule_is_refused_for_runs_and_for_ppo(name: str) -> None:
    bad: Any = "no"
    with pytest.raises(InvalidValue, match=f"{name} is 'no': it must be"):
        check_fields(dataclasses.replace(RunSettings(env="CartPole-v1"), **{name: bad}))
    if name != "anneal":
        argument = argument_of(SETTINGS[name])
        with pytest.raises(InvalidValue, match=f"{argument} is 'no': it must be"):
            dae.PPO("MlpPolicy", "CartPole-v1", **{argument: bad})


def test_an_argument_that_does_not_exist_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError, match=r"PPO has no argument 'kl_coeff'; did you mean kl_coef\?"):
        dae.PPO("MlpPolicy", "CartPole-v1", kl_coeff=0.1)
    with pytest.raises(TypeError, match=r"PPO has no argument 'gama'; did you mean gamma\?"):
        dae.PPO("MlpPolicy", "CartPole-v1", gama=0.9)


def test_annealed_settings_become_schedules() -> None:
    arguments = Hyperparameters().arguments(falling)
    assert [arguments["learning_rate"](p) for p in (1.0, 0.5, 0.0)] == pytest.approx([2.5e-4, 1.25e-4, 0])
    assert [arguments["clip_range"](p) for p in (1.0, 0.5, 0.0)] == pytest.approx([0.1, 0.05, 0])
    constant = Hyperparameters(anneal=False).arguments(falling)
    assert (constant["learning_rate"], constant["clip_range"], constant["n_steps"]) == (2.5e-4, 0.1, 128)
