"""What users of Stable-Baselines3 bring with them: policies, files, habits. And its own PPO, to compare with."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn
from torch.nn.utils import parameters_to_vector

import dae
from dae.agent.encoding import REGISTERED
from dae.agent.reference import ReferencePPO
from dae.errors import InvalidValue

SMALL: dict[str, Any] = {"n_steps": 64, "n_epochs": 2, "seed": 0}
STATES = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


def weights(model: Any) -> torch.Tensor:
    return parameters_to_vector(model.policy.parameters()).detach()


class Narrow(nn.Module):
    """An extractor as in Stable-Baselines3's guide to custom networks."""

    latent_dim_pi, latent_dim_vf = 8, 5

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 8), nn.Linear(4, 5)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.actor(features))

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.critic(features))


class OwnNetwork(ActorCriticPolicy):
    """A policy class of a user, from the same guide."""

    def __init__(self, observation_space: Any, action_space: Any, lr_schedule: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["ortho_init"] = False
        super().__init__(observation_space, action_space, lr_schedule, *args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Narrow()  # type: ignore[assignment]


class OwnForward(ActorCriticPolicy):
    """A policy that counts how often it acts and is evaluated."""

    acted = evaluated = 0

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        OwnForward.acted += 1
        return super().forward(obs, deterministic)

    def evaluate_actions(self, obs: Any, actions: Any) -> Any:
        OwnForward.evaluated += 1
        return super().evaluate_actions(obs, actions)


@pytest.mark.parametrize("advantage", ["dae", "gae"])
def test_a_policy_class_of_a_user_works(advantage: str, tmp_path: Path) -> None:
    model = dae.PPO(OwnNetwork, dae.make_vec_env("CartPole-v1", 2), advantage=advantage, **SMALL).learn(256)
    assert isinstance(model.policy, OwnNetwork)
    assert model.policy.value_net.in_features == 5
    if advantage == "dae":
        assert model.policy.critic_net.in_features == 5
    with pytest.warns(UserWarning, match=r"pickled parts \(policy_class\).*dae\.agent\.register for the classes"):
        model.save(tmp_path / "agent.zip")
    with pytest.raises(ValueError, match=r"pickled parts \(policy_class\).*trust=True"):
        dae.PPO.load(tmp_path / "agent.zip")
    assert torch.equal(weights(dae.PPO.load(tmp_path / "agent.zip", trust=True)), weights(model))


def test_a_registered_policy_class_needs_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dae.agent.encoding.REGISTERED", dict(REGISTERED))
    model = dae.PPO(dae.agent.register(OwnNetwork), "CartPole-v1", **SMALL)
    model.save(tmp_path / "agent.zip")
    assert torch.equal(weights(dae.PPO.load(tmp_path / "agent.zip")), weights(model))


def test_it_is_a_ppo_of_sb3_also_when_loaded_and_for_callbacks(tmp_path: Path) -> None:
    asked = []

    class Asking(BaseCallback):
        def _on_step(self) -> bool:
            asked.append(isinstance(self.model, stable_baselines3.PPO))
            return True

    # A minibatch of one frame, which their constructor refuses, is fine for DAE.
    model = dae.PPO("MlpPolicy", "CartPole-v1", n_steps=4, batch_size=1, seed=0).learn(4, callback=Asking())
    model.save(tmp_path / "agent.zip")
    assert asked == [True] * 4
    assert isinstance(dae.PPO.load(tmp_path / "agent.zip"), stable_baselines3.PPO)
    assert issubclass(ReferencePPO, stable_baselines3.PPO)


def test_a_policy_with_a_way_of_its_own_is_asked_and_gets_gae() -> None:
    with pytest.warns(UserWarning, match="uses advantage='gae' here, not DAE: OwnForward has its own `forward`"):
        model = dae.PPO(OwnForward, "CartPole-v1", **SMALL)
    model.learn(64)
    assert (OwnForward.acted, OwnForward.evaluated) == (64, 2)
    theirs = stable_baselines3.PPO(OwnForward, "CartPole-v1", **SMALL).learn(64)
    torch.testing.assert_close(weights(model), weights(theirs), rtol=0, atol=1e-5)


def test_the_reference_computes_bit_by_bit_what_sb3_computes(tmp_path: Path) -> None:
    env = lambda: dae.make_vec_env("CartPole-v1", 2, seed=0)  # noqa: E731
    theirs = stable_baselines3.PPO("MlpPolicy", env(), **SMALL).learn(640)
    ours = ReferencePPO("MlpPolicy", env(), advantage="gae", **SMALL).learn(640)
    assert torch.equal(weights(ours), weights(theirs))
    ours.save(tmp_path / "agent.zip")
    for kind in (ReferencePPO, dae.PPO):
        assert torch.equal(weights(kind.load(tmp_path / "agent.zip")), weights(theirs))


@pytest.mark.parametrize("advantage", [None, "gae"])
def test_an_agent_of_sb3_is_carried_over(advantage: str | None, tmp_path: Path) -> None:
    theirs = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", gamma=0.9, clip_range=0.3, **SMALL).learn(128)
    theirs.save(tmp_path / "theirs.zip")
    with pytest.raises(ValueError, match=r"looks like a Stable-Baselines3 file.*trust=True\) carries its weights over"):
        dae.PPO.load(tmp_path / "theirs.zip")
    options = {} if advantage is None else {"advantage": advantage}
    if advantage is None:
        with pytest.warns(UserWarning, match="the head for advantage='dae' and the optimizer start fresh"):
            ours = dae.PPO.load(tmp_path / "theirs.zip", env=dae.make_vec_env("CartPole-v1", 3), trust=True)
    else:
        ours = dae.PPO.load(tmp_path / "theirs.zip", trust=True, **options)
        moments = ours.policy.optimizer.state_dict()["state"]
        for index, entries in theirs.policy.optimizer.state_dict()["state"].items():
            assert torch.equal(moments[index]["exp_avg"], entries["exp_avg"])
    assert ours.advantage == (advantage or "dae")
    assert (ours.gamma, ours.clip_range(1.0), ours.n_steps, ours.num_timesteps) == (0.9, 0.3, 64, 128)
    expected = theirs.policy.get_distribution(torch.tensor(STATES)).distribution.probs
    assert torch.equal(ours.policy.get_distribution(torch.tensor(STATES)).distribution.probs, expected)
    assert torch.equal(
        ours.policy.predict_values(torch.tensor(STATES)), theirs.policy.predict_values(torch.tensor(STATES))
    )
    if advantage is None:
        ours.learn(192, reset_num_timesteps=False)
        assert ours.num_timesteps == 128 + 192


def test_a_file_of_another_algorithm_is_refused(tmp_path: Path) -> None:
    stable_baselines3.DQN("MlpPolicy", "CartPole-v1", buffer_size=10).save(tmp_path / "dqn.zip")
    with pytest.raises(ValueError, match=r"not an agent of stable_baselines3\.PPO"):
        dae.PPO.load(tmp_path / "dqn.zip", trust=True)


def test_without_a_reset_the_last_observation_is_kept(tmp_path: Path) -> None:
    env = dae.make_vec_env("CartPole-v1", 2)
    model = dae.PPO("MlpPolicy", env, **SMALL).learn(256)
    model.save(tmp_path / "agent.zip")
    going_on = dae.PPO.load(tmp_path / "agent.zip", env=env, force_reset=False)
    assert np.array_equal(going_on._last_obs, model._last_obs)
    assert np.array_equal(going_on._last_episode_starts, model._last_episode_starts)
    going_on.learn(128, reset_num_timesteps=False)
    assert dae.PPO.load(tmp_path / "agent.zip", env=env)._last_obs is None
    assert dae.PPO.load(tmp_path / "agent.zip")._last_obs is None


def test_an_attribute_of_the_user_is_saved() -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.note, file = {"why": "a test"}, io.BytesIO()
    model.save(file, exclude=["note"], include=["note"])
    file.seek(0)
    assert dae.PPO.load(file).note == {"why": "a test"}


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_agents_with_the_papers_settings_and_without_limits_are_loaded(advantage: str, tmp_path: Path) -> None:
    """Where None has a meaning, a default of another kind must not stand in its way."""
    limits = {"max_grad_norm": None} if advantage == "gae" else {"row_length": None}
    for number, settings in enumerate((dae.paper_settings("minatar", advantage), limits | {"advantage": advantage})):
        model = dae.PPO("MlpPolicy", dae.make_vec_env("CartPole-v1", 2), **settings)
        model.save(tmp_path / f"{number}.zip")
        loaded = dae.PPO.load(tmp_path / f"{number}.zip")
        assert (loaded.max_grad_norm, loaded.row_length) == (model.max_grad_norm, model.row_length)


def test_numbers_that_json_lacks_are_saved_and_what_is_too_large_is_said(tmp_path: Path) -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.best = [-np.inf, float("nan"), np.float32(2)]
    model.save(tmp_path / "agent.zip")
    best = dae.PPO.load(tmp_path / "agent.zip").best
    assert best[0] == -np.inf
    assert np.isnan(best[1])
    assert best[2] == 2
    model.history = np.zeros(2**23)
    with pytest.raises(ValueError, match=r"its attribute 'history' takes most.*exclude=\['history'\]"):
        model.save(tmp_path / "agent.zip")
    assert np.isnan(dae.PPO.load(tmp_path / "agent.zip").best[1]), "the file from before is still there"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "evil") for name in ("tensorboard_log", "env", "device", "estimator", "policy", "_logger", "train")),
        ("_vec_normalize_env", 1),
        ("seed", "1"),
        ("n_envs", "1"),
    ],
)
def test_a_file_cannot_say_where_the_program_writes_or_what_it_calls(name: str, value: Any, tmp_path: Path) -> None:
    dae.PPO("MlpPolicy", "CartPole-v1", **SMALL).save(tmp_path / "agent.zip")
    with zipfile.ZipFile(tmp_path / "agent.zip") as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    description = json.loads(parts["data.json"])
    description["data"][name] = value
    with zipfile.ZipFile(tmp_path / "crafted.zip", "w") as archive:
        for part, content in (parts | {"data.json": json.dumps(description).encode()}).items():
            archive.writestr(part, content)
    with pytest.raises(InvalidValue, match=r"crafted\.zip cannot be loaded"):
        dae.PPO.load(tmp_path / "crafted.zip")


def test_a_policy_of_a_user_is_saved_and_loaded_by_its_class(tmp_path: Path) -> None:
    model = dae.PPO(OwnNetwork, "CartPole-v1", advantage="gae", **SMALL)
    model.policy.save(tmp_path / "policy.pt")
    assert isinstance(OwnNetwork.load(tmp_path / "policy.pt"), OwnNetwork)


@pytest.mark.parametrize("changes", [{"max_grad_norm": None}, {"kl_coef": 1.0}, {"advantage": "dae"}], ids=str)
def test_the_reference_refuses_what_sb3_does_not_have(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Stable-Baselines3's own PPO does not have it"):
        ReferencePPO("MlpPolicy", "CartPole-v1", **{"advantage": "gae"} | changes)


def test_parameters_that_do_not_fit_are_a_runtime_error_as_in_sb3() -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    parameters = model.get_parameters()
    lacking = {name: dict(list(part.items())[:-1]) for name, part in parameters.items()}
    with pytest.raises(RuntimeError, match="belongs to another network: its parameter groups differ"):
        model.set_parameters(lacking, exact_match=True)
    with pytest.raises(RuntimeError, match="the weights belong to another network"):
        model.set_parameters({"policy": lacking["policy"]}, exact_match=True)


class PlainDAE(dae.agent.ESTIMATORS["dae"]):  # type: ignore[misc,valid-type]
    """DAE as it was before there was a correction, line by line."""

    def prepare(self, rollout: Any) -> None: ...

    def __call__(self, heads: Any, batch: Any) -> Any:
        mu = batch.log_probs.exp()
        all_advantages = dae.core.center(heads.critic, mu)
        index = batch.actions.reshape(*batch.shape, 1)
        ends = {"bootstrap": batch.bootstrap, "terminated": batch.terminated, "truncated": batch.truncated}
        taken = all_advantages.gather(-1, index).squeeze(-1)
        loss = dae.core.dae_loss(batch.rewards, taken, heads.values, **ends, gamma=self.gamma)
        scaled = dae.core.normalize_advantages(all_advantages.detach(), mu)
        return dae.agent.Estimate(scaled.gather(-1, index).squeeze(-1), loss)


def test_without_correction_dae_is_bit_for_bit_what_it_was() -> None:
    def learned(estimator: type | None = None, **changes: Any) -> torch.Tensor:
        settings = SMALL | {"batch_size": 64, "row_length": None} | changes
        model = dae.PPO("MlpPolicy", dae.make_vec_env("CartPole-v1", 3), **settings)
        model.estimator.__class__ = estimator or type(model.estimator)
        return weights(model.learn(600))

    uncorrected = learned(correction=0.0)
    assert torch.equal(uncorrected, learned(PlainDAE, correction=0.0))
    assert not torch.equal(uncorrected, learned())


def test_the_correction_follows_its_schedule() -> None:
    model = dae.PPO("MlpPolicy", "CartPole-v1", correction=lambda left: left, **SMALL)
    used = []
    prepare = model.estimator.prepare
    model.estimator.prepare = lambda rollout: (used.append(model.estimator.correction), prepare(rollout))[1]
    model.learn(256)
    assert used == [0.75, 0.5, 0.25, 0.0]


def test_clipped_values_and_an_early_stop_are_shown_as_sb3_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for kind, own in ((stable_baselines3.PPO, {}), (dae.PPO, {"advantage": "gae"})):
        model = kind("MlpPolicy", "CartPole-v1", clip_range_vf=0.2, target_kl=1e-9, verbose=1, **SMALL, **own).learn(64)
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Early")]
        shown.append((lines, set(model.logger.name_to_value)))
    assert shown[0] == shown[1]
    assert "Early stopping at step 1" in shown[0][0][0]
    assert "train/clip_range_vf" in shown[0][1]


def test_small_slips_of_a_program_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"policy 'MlpPolcy' is not known; did you mean MlpPolicy\?"):
        dae.PPO("MlpPolcy", "CartPole-v1")
    with pytest.raises(InvalidValue, match="seed is 'a': it must be an integer or None"):
        dae.PPO("MlpPolicy", "CartPole-v1", seed="a")
    model = dae.PPO("MlpPolicy", "CartPole-v1", n_steps=np.int64(64), seed=np.random.default_rng(0).integers(9))
    model.save(tmp_path / "agent.zip")
    with pytest.raises(InvalidValue, match=r"the agent has no environment.*set_env\(env\)"):
        dae.PPO.load(tmp_path / "agent.zip").learn(64)


class OldStyle(gym.Env[np.ndarray, int]):
    """An environment whose `reset` knows no options, which Stable-Baselines3 never passes."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None) -> Any:  # type: ignore[override]
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> Any:
        return np.zeros(2, np.float32), 1.0, True, False, {}


def test_an_environment_whose_reset_takes_no_options_works() -> None:
    dae.PPO("MlpPolicy", OldStyle(), n_steps=8, batch_size=8, n_epochs=1).learn(8)
