"""PPO as a user of Stable-Baselines3 meets it: habits, refusals, networks, and answers on worlds that are known."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper
from stable_baselines3.dqn.policies import DQNPolicy

import dae
from dae.agent.settings import falling
from dae.hyperparameters import PPOOptions
from tests.agent.worlds import Delayed, Known, Spaces

SMALL: dict[str, Any] = {"n_steps": 16, "batch_size": 32, "n_epochs": 2, "seed": 0}


def cartpole(n: int = 4) -> Any:
    return dae.make_vec_env("CartPole-v1", n)


@pytest.mark.filterwarnings("ignore::tqdm.TqdmExperimentalWarning")
@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_callbacks_logger_tensorboard_and_progress_bar(advantage: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    callbacks = [
        CheckpointCallback(32, str(tmp_path / "checkpoints")),
        EvalCallback(
            cartpole(2), eval_freq=16, n_eval_episodes=2, best_model_save_path=str(tmp_path / "best"), verbose=0
        ),
    ]
    model = dae.PPO("MlpPolicy", cartpole(), advantage=advantage, tensorboard_log=str(tmp_path / "tb"), **SMALL)
    assert model.learn(256, callback=callbacks, progress_bar=True) is model
    assert list((tmp_path / "tb").rglob("events.*"))
    assert len(list((tmp_path / "checkpoints").glob("*.zip"))) == 2
    assert isinstance(dae.PPO.load(tmp_path / "best" / "best_model"), dae.PPO)
    logged = model.logger.name_to_value
    names = [
        "loss",
        "value_loss",
        "policy_gradient_loss",
        "entropy_loss",
        "approx_kl",
        "clip_fraction",
        "explained_variance",
    ]
    assert all(np.isfinite(logged[f"train/{name}"]) for name in names)
    assert model.num_timesteps == 256
    assert model._n_updates == 4 * 2


def test_stopping_continuing_and_other_environments() -> None:
    model = dae.PPO("MlpPolicy", cartpole(), **SMALL)
    model.learn(10_000, callback=StopTrainingOnMaxEpisodes(3))
    stopped = model.num_timesteps
    assert stopped < 10_000
    model.learn(128, reset_num_timesteps=False)
    assert model.num_timesteps == stopped + 128
    model.set_env(cartpole(4))
    assert model.get_env() is not None
    mean, _ = evaluate_policy(model, cartpole(2), n_eval_episodes=4)
    assert mean > 5
    observation = model.get_env().reset()
    greedy = [model.predict(observation, deterministic=True)[0].tolist() for _ in range(5)]
    assert greedy == [greedy[0]] * 5


def test_a_seed_repeats_a_training() -> None:
    weights = [
        torch.nn.utils.parameters_to_vector(
            dae.PPO("MlpPolicy", cartpole(), **(SMALL | {"seed": s})).learn(128).policy.parameters()
        )
        for s in (0, 0, 1)
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


class OwnForward(ActorCriticPolicy):
    """A policy as users of Stable-Baselines3 write them, which prefers action 0."""

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        actions, values, _ = super().forward(obs, deterministic)
        return actions, values, self.evaluate_actions(obs, actions)[1]

    def evaluate_actions(self, obs: Any, actions: Any) -> Any:
        values, log_prob, entropy = super().evaluate_actions(obs, actions)
        self.calls = getattr(self, "calls", 0) + 1
        return values, log_prob, entropy


def test_the_papers_settings() -> None:
    model = dae.PPO("CnnPolicy", dae.make_vec_env("MinAtar/Asterix-v1", 4), **dae.paper_settings("minatar"))
    assert model.advantage == "dae"
    assert (model.n_steps, model.batch_size, model.n_epochs, model.correction) == (128, 256, 6, 0.0)
    assert (model.ent_coef, model.vf_coef, model.max_grad_norm, model.gamma) == (0.01, 1.5, None, 0.99)
    assert [model.lr_schedule(p) for p in (1.0, 0.5, 0.0)] == pytest.approx([2.5e-4, 1.25e-4, 0])
    assert [model.clip_range(p) for p in (1.0, 0.5, 0.0)] == pytest.approx([0.1, 0.05, 0])
    group = model.policy.optimizer.param_groups[0]
    assert (group["eps"], group["betas"]) == (1e-5, (0.9, 0.999))
    of_gae = dae.paper_settings("atari", "gae")
    assert (of_gae["advantage"], of_gae["n_epochs"], of_gae["vf_coef"], of_gae["max_grad_norm"]) == ("gae", 4, 0.5, 0.5)
    with pytest.raises(
        ValueError, match=r"family is 'minatr': it must be one of minatar, atari; did you mean minatar\?"
    ):
        dae.paper_settings("minatr")


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_the_defaults_are_those_of_sb3_but_for_correction_and_rows(advantage: str) -> None:
    ours, theirs = (
        dae.PPO("MlpPolicy", "CartPole-v1", advantage=advantage),
        stable_baselines3.PPO("MlpPolicy", "CartPole-v1"),
    )
    same = (
        *("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm"),
        *("normalize_advantage", "target_kl"),
    )
    assert [getattr(ours, name) for name in same] == [getattr(theirs, name) for name in same]
    for progress in (1.0, 0.5, 0.0):
        assert ours.lr_schedule(progress) == theirs.lr_schedule(progress) == 3e-4, "nothing falls to 0 unless asked"
        assert ours.clip_range(progress) == theirs.clip_range(progress)
    own = {"dae": PPOOptions(correction=1.0, row_length=1), "duel": PPOOptions(correction=1.0)}
    assert ours.options == own.get(advantage, PPOOptions())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"advantage": "gaee"}, "advantage='gaee' is not known; choose one of gae, dae, duel, indirect"),
        ({"gamma": 1.5}, r"gamma is 1.5: it must be in \[0, 1\]"),
        ({"gae_lambda": float("nan")}, "gae_lambda is nan"),
        ({"n_epochs": 0}, "n_epochs is 0: it must be an integer of at least 1"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan: it must be a number of at least 0 or a schedule"),
        ({"clip_range": 0}, "clip_range is 0: it must be a positive number or a schedule"),
        ({"max_grad_norm": 0}, "max_grad_norm is 0: it must be a positive number, or None for no clipping"),
        ({"gamma": "0.9"}, r"gamma is '0.9': it must be in \[0, 1\]"),
        ({"n_steps": True}, "n_steps is True"),
        ({"normalize_advantage": "no"}, "normalize_advantage is 'no': it must be True or False"),
        ({"advantage": "gae", "clip_range_vf": -0.1}, "clip_range_vf is -0.1"),
        ({"advantage": ["dae"]}, r"advantage=\['dae'\] is not known"),
        ({"policy": 5}, "policy is 5: it must be a name"),
        ({"env": None}, "env is None: an agent needs an environment"),
        ({"ent_coef": float("inf")}, "ent_coef is inf: it must be a number of at least 0"),
        ({"advantage": "dae", "clip_range_vf": 0.2}, "clip_range_vf=0.2 has no meaning for advantage='dae'"),
        ({"rollout_buffer_class": RolloutBuffer}, "rollout_buffer_class and rollout_buffer_kwargs are not supported"),
        ({"advantage": "gae", "batch_size": 1}, "normalising advantages needs at least 2"),
        ({"policy": DQNPolicy}, "policy DQNPolicy is not an actor-critic policy"),
        ({"advantage": "dae", "policy": OwnForward}, "policy OwnForward has its own `forward` or `evaluate_actions`"),
        ({"advantage": "gae", "correction": 0.5}, "correction=0.5 has no meaning for advantage='gae'"),
        ({"advantage": "gae", "row_length": 8}, "row_length=8 has no meaning for advantage='gae'"),
        ({"correction": 1.5}, r"correction is 1.5: it must be in \[0, 1\] or a schedule"),
    ],
)
def test_settings_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dae.PPO(**({"policy": "MlpPolicy", "env": "CartPole-v1"} | arguments))


def test_a_minibatch_that_is_no_multiple_of_a_row_is_announced() -> None:
    with pytest.warns(UserWarning, match="batch_size=24 is not a multiple of rows of 16 steps.*have 16 steps"):
        dae.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=24, row_length=None)


def test_rows_of_one_step_without_correction_are_announced() -> None:
    with pytest.warns(
        UserWarning, match="row_length=1 lets DAE look one step ahead if correction=0: pass row_length=None"
    ):
        dae.PPO("MlpPolicy", "CartPole-v1", correction=0)


@pytest.mark.parametrize("advantage", ["dae", "duel", "indirect"])
@pytest.mark.filterwarnings("ignore:batch_size=64 is not a multiple:UserWarning")
@pytest.mark.filterwarnings("ignore:batch_size=.* does not divide:UserWarning")
@pytest.mark.parametrize("sizes", [(2048, 64), (40, 64), (7, 3), (1, 1)], ids=str)
def test_any_sizes_that_sb3_takes_train(advantage: str, sizes: tuple[int, int]) -> None:
    """Most agents of Stable-Baselines3 have rows longer than a minibatch: these are cut."""
    model = dae.PPO("MlpPolicy", "CartPole-v1", advantage=advantage, n_steps=sizes[0], batch_size=sizes[1], n_epochs=1)
    before = torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()
    after = torch.nn.utils.parameters_to_vector(model.learn(2 * sizes[0]).policy.parameters())
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)


@pytest.mark.parametrize(
    ("advantage", "space"),
    [
        ("dae", spaces.Box(-1, 1, (2,))),
        ("duel", spaces.Box(-1, 1, (2,))),
        ("indirect", spaces.MultiDiscrete([2, 3])),
        ("indirect", spaces.MultiBinary(2)),
    ],
    ids=str,
)
def test_actions_that_cannot_be_centred_are_refused(advantage: str, space: spaces.Space[Any]) -> None:
    with pytest.raises(ValueError, match=f"advantage='{advantage}' needs actions of the kind .*use advantage='gae'"):
        dae.PPO("MlpPolicy", Spaces(spaces.Box(-1, 1, (3,)), space), advantage=advantage)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(3), "dae"),
        (spaces.MultiDiscrete([2, 3]), "dae"),
        (spaces.MultiBinary(2), "dae"),
        (spaces.Box(-1, 1, (2,)), "gae"),
    ],
    ids=str,
)
def test_whoever_does_not_choose_gets_dae_where_it_works(space: spaces.Space[Any], expected: str) -> None:
    env = Spaces(spaces.Box(-1, 1, (3,)), space)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = dae.PPO("MlpPolicy", env, n_steps=64)
    assert model.advantage == expected
    told = [str(warning.message) for warning in said if "dae.PPO uses" in str(warning.message)]
    assert len(told) == (expected == "gae")
    if told:
        assert told[0].startswith("dae.PPO uses advantage='gae' here, not DAE: ")
        assert said[-1].filename == __file__


def test_whoever_clips_values_gets_gae() -> None:
    with pytest.warns(UserWarning, match="dae.PPO uses advantage='gae' here, not DAE: clip_range_vf has no meaning"):
        assert dae.PPO("MlpPolicy", "CartPole-v1", clip_range_vf=0.2).advantage == "gae"


def test_a_call_that_cannot_learn_is_announced() -> None:
    model = dae.PPO("MlpPolicy", cartpole(), **SMALL, learning_rate=falling(1e-3))
    with pytest.warns(UserWarning, match=r"learn\(64\) covers one rollout.*nothing is learned"):
        model.learn(64)


class NeverRight(dae.agent.MlpPolicy):
    """A policy that masks action 1 where the distribution is made, as Stable-Baselines3 lets one do."""

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        logits = self.action_net(latent_pi) + torch.tensor([0.0, -1e8])
        return self.action_dist.proba_distribution(action_logits=logits)


@pytest.mark.parametrize("advantage", ["dae", "gae"])
def test_a_policy_that_masks_actions_learns_as_it_acts(advantage: str) -> None:
    model = dae.PPO(NeverRight, cartpole(), advantage=advantage, **SMALL).learn(128)
    assert (model.rollout_buffer.actions == 0).all()
    assert model.logger.name_to_value["train/approx_kl"] == pytest.approx(0, abs=1e-6)


def test_another_policy_can_be_put_in_its_place() -> None:
    model, other = (dae.PPO("MlpPolicy", cartpole(), **SMALL) for _ in range(2))
    model.policy = other.policy
    before = torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()
    model.learn(128)
    assert not torch.equal(torch.nn.utils.parameters_to_vector(model.policy.parameters()), before)


class Fails(Known):
    """Gives a bad reward or observation at the third step."""

    def __init__(self, what: str) -> None:
        super().__init__([[0.0, 1.0]] * 6)
        self.what = what

    def step(self, action: int) -> Any:
        observation, reward, *rest = super().step(action)
        if self.state == 3 and self.what == "reward":
            reward = float("nan")
        if self.state == 3 and self.what == "observation":
            observation = observation + np.inf
        return observation, reward, *rest


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("what", ["reward", "observation"])
def test_what_is_not_finite_stops_training(what: str) -> None:
    envs = make_vec_env(lambda: Known([[0.0, 1.0]] * 6), 2, seed=0)
    envs.envs[1] = Fails(what)
    with pytest.raises(dae.agent.NotFiniteError, match=f"environment 1 gave .*{what}.* at step 3"):
        dae.PPO("MlpPolicy", envs, n_steps=8, batch_size=8).learn(64)


class NotFiniteAtStart(Known):
    """Its first observation is not a number."""

    def reset(self, **options: Any) -> Any:
        observation, info = super().reset(**options)
        return observation * np.nan, info


class NotFiniteWhenCut(Known):
    """A time limit cuts its episodes, and the last observation is not a number."""

    def step(self, action: int) -> Any:
        observation, reward, ended, _, info = super().step(action)
        return (observation * np.nan if ended else observation), reward, False, ended, info


@pytest.mark.parametrize(("kind", "step"), [(NotFiniteAtStart, 0), (NotFiniteWhenCut, 6)])
def test_what_is_not_finite_at_the_ends_of_an_episode_stops_training(kind: type[Known], step: int) -> None:
    envs = make_vec_env(lambda: Known([[0.0, 1.0]] * 6), 2, seed=0)
    envs.envs[1] = kind([[0.0, 1.0]] * 6)
    model = dae.PPO("MlpPolicy", envs, n_steps=8, batch_size=8)
    with pytest.raises(dae.agent.NotFiniteError, match=f"environment 1 gave an observation .* at step {step}"):
        model.learn(64)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_that_is_too_large_is_told_and_nothing_is_saved(tmp_path: Path) -> None:
    """The gradient is finite, and the weights after the step are not."""
    envs = make_vec_env(lambda: Known([[0.0, 1.0]] * 6), 4, seed=0)
    model = dae.PPO("MlpPolicy", envs, learning_rate=1e38, **SMALL)
    with pytest.raises(dae.agent.NotFiniteError, match="the weights are not finite after the update at 64 steps"):
        model.learn(1024)
    with pytest.raises(dae.agent.NotFiniteError, match="the agent is not saved"):
        model.save(tmp_path / "agent")
    assert list(tmp_path.iterdir()) == []


class Reused(Known):
    """It shows everything in one array, and a time limit cuts its episodes."""

    def __init__(self, rewards: list[list[float]]) -> None:
        super().__init__(rewards)
        self.seen = np.zeros(len(rewards), np.float32)

    def _see(self) -> np.ndarray:
        self.seen[:] = np.arange(len(self.rewards)) == self.state - 1
        return self.seen

    def step(self, action: int) -> Any:
        observation, reward, ended, _, info = super().step(action)
        return observation, reward, False, ended, info


@pytest.mark.parametrize("given", ["environment", "vector", "bare vector"])
def test_an_environment_may_use_one_array_for_all_observations(given: str) -> None:
    one = Reused([[0.0, 1.0]] * 5)
    env: Any = {
        "environment": lambda: one,
        "vector": lambda: make_vec_env(lambda: one, 1),
        "bare vector": lambda: DummyVecEnv([lambda: one]),
    }[given]()
    model = dae.PPO("MlpPolicy", env, n_steps=10, batch_size=10, seed=0)
    model.learn(10)
    rollout = model.rollout_buffer
    seen = rollout.observations[0].numpy()
    expected = np.concatenate([np.zeros((1, 5)), np.eye(5)[:4]])
    np.testing.assert_array_equal(seen, np.concatenate([expected, expected]))
    assert rollout.truncated[0].nonzero().flatten().tolist() == [4, 9]
    fresh = dae.PPO("MlpPolicy", Reused([[0.0, 1.0]] * 5), n_steps=10, batch_size=10, seed=0)
    last = torch.as_tensor(np.eye(5, dtype=np.float32)[4:])  # and not the observation after the reset
    with torch.no_grad():
        value = fresh.policy.predict_values(last).item()
    assert rollout.bootstrap[0, [4, 9]].tolist() == pytest.approx([value, value])
    if given != "environment":
        env.set_attr("seen_by", "the user")
        assert env.get_attr("seen_by") == ["the user"]
    if given == "bare vector":
        assert one.seen_by == "the user"  # type: ignore[attr-defined]
        assert env.envs[0].rewards is one.rewards


class OneBuffer(VecEnvWrapper):
    """Environments whose observations always come in the same array."""

    def reset(self) -> Any:
        self.shown = np.array(self.venv.reset())
        return self.shown

    def step_wait(self) -> Any:
        observations, *rest = self.venv.step_wait()
        self.shown[:] = observations
        return self.shown, *rest


def test_a_vector_environment_may_use_one_array_for_all_observations() -> None:
    stored = []
    for wrap in (lambda venv: venv, OneBuffer):
        envs = wrap(make_vec_env(lambda: Known([[0.0, 1.0]] * 5), 2, seed=0))
        model = dae.PPO("MlpPolicy", envs, n_steps=10, batch_size=10, seed=0)
        model.learn(20)
        stored.append(model.rollout_buffer.observations)
    np.testing.assert_array_equal(*stored)


def test_an_exploding_loss_leaves_the_weights_finite() -> None:
    model = dae.PPO("MlpPolicy", make_vec_env(lambda: Known([[1e38, 3e38]]), 4, seed=0), **SMALL)
    with pytest.raises(dae.agent.NotFiniteError, match="not finite in the update after 64 steps"):
        model.learn(1024)
    assert all(torch.isfinite(parameter).all() for parameter in model.policy.parameters())


def test_policies_of_sb3_are_understood() -> None:
    assert type(dae.PPO(ActorCriticPolicy, "CartPole-v1").policy) is dae.agent.MlpPolicy


@pytest.mark.parametrize("advantage", ["dae", "duel"])
def test_credit_is_centred_under_the_current_policy(advantage: str) -> None:
    model = dae.PPO("MlpPolicy", cartpole(), advantage=advantage, **SMALL).learn(128)
    advantages, values, probabilities = model.advantages(np.zeros((5, 4), np.float32))
    assert advantages.shape == probabilities.shape == (5, 2)
    assert values.shape == (5,)
    np.testing.assert_allclose((probabilities * advantages).sum(1), 0, atol=1e-6)


def test_credit_of_gae_is_refused() -> None:
    with pytest.raises(ValueError, match="does not model the advantages of all actions"):
        dae.PPO("MlpPolicy", cartpole(), advantage="gae").advantages(np.zeros((1, 4), np.float32))


QUICK: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 256,
    "learning_rate": 3e-3,
    "clip_range": 0.2,
    "n_epochs": 6,
    "ent_coef": 0.0,
    "seed": 0,
    "gamma": 0.9,
    "policy_kwargs": {"net_arch": [32]},
}


def learned(env: Any, frames: int, **changes: Any) -> dae.PPO:
    model = dae.PPO("MlpPolicy", make_vec_env(env, 32, seed=0), **(QUICK | changes))
    return model.learn(frames)


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_one_state_has_the_value_of_its_reward(advantage: str) -> None:
    model = learned(lambda: Known([[1.0, 1.0]]), 20_000, advantage=advantage)
    value = model.policy.predict_values(torch.ones(1, 1)).item()
    assert value == pytest.approx(1, abs=0.05)
    if advantage != "gae":
        assert np.abs(model.advantages(np.ones((1, 1), np.float32)).advantages).max() < 0.1


@pytest.mark.parametrize("advantage", ["dae", "gae", "duel", "indirect"])
def test_the_better_of_two_actions_is_found(advantage: str) -> None:
    model = learned(lambda: Known([[0.0, 1.0]]), 30_000, advantage=advantage)
    assert model.policy.get_distribution(torch.ones(1, 1)).distribution.probs[0, 1] > 0.95


def test_with_a_policy_that_stays_dae_finds_the_true_advantages_of_the_chain() -> None:
    """The paper's chain, with a policy held near uniform: Â approaches r − E[r], V̂ the discounted sum."""
    rewards = np.random.default_rng(0).permuted(np.tile([0.0, 1.0], (6, 1)), axis=1)
    model = learned(lambda: Known(rewards.tolist()), 200_000, ent_coef=30.0)
    credit = model.advantages(np.eye(6, dtype=np.float32))
    np.testing.assert_allclose(credit.probabilities, 0.5, atol=0.03)
    expected = rewards - (credit.probabilities * rewards).sum(1, keepdims=True)
    np.testing.assert_allclose(credit.advantages, expected, atol=0.1)
    values = [sum(0.9**k * 0.5 for k in range(6 - s)) for s in range(6)]
    np.testing.assert_allclose(credit.values, values, atol=0.15)


def test_a_delayed_reward_is_credited_to_the_action_that_caused_it() -> None:
    model = learned(Delayed, 200_000, ent_coef=30.0)
    places = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, -1]], np.float32)
    advantages = model.advantages(places).advantages
    np.testing.assert_allclose(advantages[0], [-0.81, 0.81], atol=0.15)
    np.testing.assert_allclose(advantages[1:], 0, atol=0.15)


@pytest.mark.parametrize("env", [lambda: gym.make("CartPole-v1"), gym.Env, 3])
def test_what_is_no_environment_is_refused_in_one_line(env: Any) -> None:
    with pytest.raises(ValueError, match=r"it must be an id such as 'CartPole-v1', an environment or a VecEnv"):
        dae.PPO("MlpPolicy", env)


def test_warnings_about_minibatches_point_to_where_the_agent_is_made() -> None:
    with pytest.warns(UserWarning, match="does not divide the 100 steps") as told:
        dae.PPO("MlpPolicy", "CartPole-v1", n_steps=100, batch_size=64)
    assert told[0].filename == __file__
    dae.PPO("MlpPolicy", "CartPole-v1", n_steps=100, batch_size=64, minibatches="segments", correction=0)
