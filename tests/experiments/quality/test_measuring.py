"""The whole meter on small MDPs, whose advantages are known exactly."""

import numpy as np
import pytest
from numpy.typing import NDArray

import dae
from dae import catalog
from dae.agent import estimators
from dae.errors import InvalidValue, UserError
from dae.experiments.quality.measuring import Measurement
from dae.theory import advantages, chain, random_mdp, random_policy, state_values
from tests.finite import index_of, make_env, table_agent

RNG = np.random.default_rng(3)
MDP = random_mdp(RNG, n_states=8, n_actions=3)
POLICY = random_policy(RNG, MDP)
EXACT, VALUES = advantages(MDP, POLICY), state_values(MDP, POLICY)
WRONG = EXACT + 0.5 * RNG.normal(size=EXACT.shape)
SETTINGS = {"n_steps": 16, "batch_size": 64, "n_epochs": 4, "learning_rate": 0.01, "gamma": MDP.gamma, "seed": 0}
PAPER = {"correction": 0.0, "row_length": None}


def agent(advantage: str = "dae", critic: NDArray[np.float64] | None = None, **settings: object) -> dae.PPO:
    given = SETTINGS | (PAPER if advantage == "dae" else {}) | settings
    return table_agent(MDP, POLICY, values=VALUES, critic=critic, advantage=advantage, env=make_env(MDP, 4), **given)


def measured(model: dae.PPO, *names: str, **options: int) -> Measurement:
    given = {"states": 16, "rollouts": 60, "horizon": 60, "steps": 0, "probes": 2, "seed": 1} | options
    return dae.measure_quality(model, make_env(MDP, 32), estimators=names, **given)


def test_a_critic_that_knows_the_advantages_is_perfect() -> None:
    quality = measured(agent(critic=EXACT))["own"].quality
    assert abs(quality.bias.value) < 4 * quality.bias.error
    assert abs(quality.mse.value) < 4 * quality.mse.error
    assert (quality.rank_correlation.value, quality.best_action.value) == (1.0, 1.0)
    assert quality.gradient_cosine.value == pytest.approx(1, abs=4 * quality.gradient_cosine.error)
    assert quality.noise.value == 0
    assert quality.centring.value < 1e-5


def test_bias_and_squared_error_of_a_wrong_critic_are_the_exact_ones() -> None:
    found = measured(agent(critic=WRONG), rollouts=120)
    met = [index_of(state) for state in found.states]
    errors = (WRONG - (POLICY * WRONG).sum(1, keepdims=True) - EXACT)[met]
    truth, own = found.truth.advantages, found["own"]
    spread = truth.samples.mean((0, 1)).std(ddof=1) / np.sqrt(120)
    assert own.quality.bias.value == pytest.approx(errors.mean(), abs=4 * spread)
    assert own.quality.mse.value == pytest.approx((errors**2).mean(), rel=0.15)
    assert own.quality.noise.value == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(own.estimates[..., 0], (errors + EXACT[met]), atol=1e-5)


def test_gae_with_exact_values_has_noise_and_no_bias() -> None:
    quality = measured(agent("gae"), probes=16)["own"].quality
    assert abs(quality.bias.value) < 4 * quality.bias.error
    assert quality.noise.value > 0.5 * (EXACT**2).mean()
    assert quality.mse.value == pytest.approx(quality.noise.value, rel=0.15)
    assert quality.rank_correlation.value < 0.9
    assert quality.centring.value > 0.1


@pytest.fixture
def _with_running_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy estimator, for one test."""
    monkeypatch.setattr(catalog, "_KNOWN", dict(catalog._KNOWN))
    monkeypatch.setattr(estimators, "ESTIMATORS", dict(estimators.ESTIMATORS))
    from tests.extending.toy_estimator import RunningMean

    if RunningMean.info.name not in estimators.ESTIMATORS:
        estimators.register_estimator(RunningMean)


@pytest.mark.usefixtures("_with_running_mean")
def test_estimators_learn_from_the_same_rollouts_whichever_others_do() -> None:
    model = agent(critic=EXACT)
    together = measured(model, "gae", "dae", "duel", "indirect", "running-mean", steps=3_000)
    alone = measured(model, "dae", steps=3_000)
    assert [judged.name for judged in together.judged] == ["own", "gae", "dae", "duel", "indirect", "running-mean"]
    np.testing.assert_array_equal(together.truth.returns, alone.truth.returns)
    for name in ("own", "dae"):
        np.testing.assert_array_equal(together[name].estimates, alone[name].estimates)
    assert together["dae"].quality.relative.value < 0.7  # they have learned
    assert together["dae"].quality.noise.value == 0
    assert together["gae"].quality.noise.value > 0
    assert together["indirect"].quality.centring.value > 1e-3 > together["duel"].quality.centring.value


def test_the_agent_and_the_program_s_random_numbers_stay_as_they_were() -> None:
    model = agent(critic=EXACT)
    before = {name: weight.clone() for name, weight in model.policy.state_dict().items()}
    np.random.seed(5)  # noqa: NPY002
    first = measured(model, "dae", steps=500)
    drawn = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    assert np.random.random() == drawn  # noqa: NPY002
    second = measured(model, "dae", steps=500)
    for name, weight in model.policy.state_dict().items():
        assert weight.equal(before[name])
    assert first["dae"].quality == second["dae"].quality
    assert measured(model, seed=2)["own"].quality != first["own"].quality


def test_a_corrected_estimator_is_measured_with_and_without_its_correction() -> None:
    found = measured(agent(critic=EXACT, correction=1.0), probes=4)
    assert [judged.label for judged in found.judged] == ["own DAE", "own DAE network"]
    assert found["own"].quality.noise.value > 0
    assert found["own-network"].quality.noise.value == 0
    assert found["own-network"].quality.rank_correlation.value == 1.0


def test_on_the_chain_futures_are_shared_and_the_truth_is_exact() -> None:
    mdp = chain(6)
    policy = np.full((7, 2), 0.5)
    env = make_env(mdp, 8)
    model = table_agent(
        mdp, policy, critic=advantages(mdp, policy), env=make_env(mdp, 1), **SETTINGS | PAPER | {"gamma": 0.99}
    )
    found = dae.measure_quality(model, env, estimators=[], states=6, rollouts=10, horizon=8, steps=0, probes=1)
    assert found.truth.advantages.error.max() < 1e-12
    assert found["own"].quality.mse.value == pytest.approx(0, abs=1e-10)
    assert found.sure_states == 6


def test_where_all_actions_are_the_same_there_is_nothing_to_know() -> None:
    found = measured(agent(critic=WRONG), horizon=1, rollouts=10)  # of which only the last state's rewards differ
    mdp = chain(3)
    flat = table_agent(mdp, np.full((4, 2), 0.5), critic=np.zeros((4, 2)), env=make_env(mdp, 1), **SETTINGS | PAPER)
    blank = dae.measure_quality(
        flat, make_env(mdp, 4), estimators=[], states=4, rollouts=10, horizon=1, steps=0, probes=1
    )
    assert np.isfinite(found["own"].quality.mse.value)
    assert blank["own"].quality.relative.value == pytest.approx(1)  # it says 0 everywhere


def test_new_critics_are_the_paper_s_whatever_the_agent_uses() -> None:
    """With rows of one step, Duel would be DAE."""
    model = agent(critic=EXACT, correction=1.0, row_length=1)
    found = measured(model, "dae", "duel", steps=3_000)
    assert [judged.name for judged in found.judged] == ["own", "dae", "duel", "own-network"]
    assert np.abs(found["dae"].estimates - found["duel"].estimates).max() > 0.01
    assert found["dae"].quality.noise.value == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"estimators": ["nope"]}, "'nope' is not known; choose one of"),
        ({"rollouts": 9}, "rollouts is 9: it must be an integer of at least 10"),
        ({"states": 0}, "states is 0"),
        ({"steps": -1}, "steps is -1"),
    ],
)
def test_bad_arguments(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        dae.measure_quality(agent(critic=EXACT), make_env(MDP, 2), **options)


def test_actions_that_cannot_be_enumerated() -> None:
    model = dae.PPO("MlpPolicy", "Pendulum-v1", advantage="gae", n_steps=8, batch_size=8)
    with pytest.raises(UserError, match="must be Discrete"):
        dae.measure_quality(model, dae.make_vec_env("Pendulum-v1", 2))
