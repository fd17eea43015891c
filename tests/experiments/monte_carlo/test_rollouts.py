"""The engine: every rollout is what it would be alone, ends where it should, and can be played again."""

from dataclasses import astuple, replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize

import dae
from dae import theory
from dae.agent.reference import ReferencePPO
from dae.envs.restoring import restorable
from dae.errors import UserError
from dae.experiments.monte_carlo import Outcomes, Plan, Simulator
from dae.experiments.monte_carlo.rollouts import _draw
from dae.theory import FiniteMDP
from tests.finite import index_of, make_env, states_of, table_agent

CHAIN = theory.chain(5, gamma=0.5, best=np.array([0, 1, 1, 0, 1]))
RANDOM = theory.random_mdp(np.random.default_rng(0), n_states=6)
POLICY = theory.random_policy(np.random.default_rng(1), RANDOM)


def simulator_of(mdp: FiniteMDP = RANDOM, policy: Any = POLICY, *, slots: int = 7, **options: Any) -> Simulator:
    env = make_env(mdp, slots, **options)
    return Simulator(table_agent(mdp, policy, env=make_env(mdp, 1, **options)), env)


def every_pair(mdp: FiniteMDP, rollouts: int = 1, seed: int = 0) -> Plan:
    starts, actions, _ = (index.ravel() for index in np.indices((mdp.n_states, mdp.n_actions, rollouts)))
    return Plan(starts, actions, np.arange(starts.size), seed)


def play(simulator: Simulator, plan: Plan, *, horizon: int = 30, gamma: float = 0.9) -> Outcomes:
    return simulator.play_out(states_of(simulator.env), plan, horizon=horizon, gamma=gamma)


def assert_same(one: Outcomes, other: Outcomes) -> None:
    for a, b in zip(astuple(one), astuple(other), strict=True):
        np.testing.assert_array_equal(a, b)


def some(outcomes: Outcomes, which: Any) -> Outcomes:
    return Outcomes(*(part[which] for part in astuple(outcomes)))


# A rollout does not depend on its company. ------------------------------------------------------------------------


def test_the_number_of_places_changes_nothing() -> None:
    plan = every_pair(RANDOM, rollouts=8)
    alone, few, more_than_rollouts = (play(simulator_of(slots=slots), plan) for slots in (1, 7, 200))
    assert_same(alone, few)
    assert_same(alone, more_than_rollouts)
    assert len(np.unique(alone.returns)) > 50


def test_company_and_order_change_nothing() -> None:
    simulator, plan = simulator_of(), every_pair(RANDOM, rollouts=5)
    order = np.random.default_rng(0).permutation(len(plan.starts))
    everything = play(simulator, plan)
    for which in (order, order[:11], order[:0]):
        chosen = replace(plan, starts=plan.starts[which], actions=plan.actions[which], numbers=plan.numbers[which])
        assert_same(play(simulator, chosen), some(everything, which))


def test_random_numbers_follow_from_the_seed_and_the_number() -> None:
    simulator, plan = simulator_of(), every_pair(RANDOM, rollouts=5)
    first, again, other = (play(simulator, replace(plan, seed=seed)) for seed in (0, 0, 1))
    assert_same(first, again)
    moved = play(simulator, replace(plan, numbers=plan.numbers + 1))
    for different in (other, moved):
        assert (first.returns != different.returns).mean() > 0.5
    longer = play(simulator, plan, horizon=31)
    np.testing.assert_array_equal(longer.returns[~first.cut], first.returns[~first.cut])


def test_the_same_number_is_the_same_future() -> None:
    simulator = simulator_of()
    starts = np.repeat(0, 20)
    outcomes = play(simulator, Plan(starts, starts, np.repeat(3, 20), seed=0))
    assert len(np.unique(outcomes.returns)) == 1


@pytest.mark.parametrize("game", ["Breakout", "Seaquest"])
def test_games_do_not_depend_on_company_either(game: str) -> None:
    """But for the network, whose rounding may depend on the size of a batch; here no action changes by it."""
    env_id = f"MinAtar/{game}-v1"
    model = dae.PPO("CnnPolicy", dae.make_vec_env(env_id, 2), **dae.paper_settings("minatar"), seed=0, device="cpu")
    outcomes, states = [], None
    for slots in (5, 24):
        simulator = Simulator(model, dae.make_vec_env(env_id, slots, seed=0))
        if states is None:
            for _ in range(10):
                simulator.env.step(np.zeros(slots, np.int64))
            states = simulator.take(range(5))
        plan = Plan(np.arange(40) % 5, np.arange(40) % 3, np.arange(40), seed=0)
        outcomes.append(simulator.play_out(states, plan, horizon=30, gamma=0.99))
    assert_same(*outcomes)
    assert not outcomes[0].cut.all()


# Where rollouts end. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1, 3, 10])
def test_lengths_and_cuts(horizon: int) -> None:
    outcomes = play(simulator_of(CHAIN, np.full((6, 2), 0.5)), plan := every_pair(CHAIN), horizon=horizon)
    left = np.maximum(5 - plan.starts, 1)  # the last state is over, which is known after a step
    np.testing.assert_array_equal(outcomes.lengths, np.minimum(left, horizon))
    np.testing.assert_array_equal(outcomes.cut, left > horizon)
    np.testing.assert_array_equal(outcomes.returns[plan.starts == 5], 0)


def test_a_time_limit_cuts() -> None:
    simulator = simulator_of(CHAIN, np.full((6, 2), 0.5), time_limit=2)
    outcomes = play(simulator, plan := every_pair(CHAIN))
    np.testing.assert_array_equal(outcomes.lengths, np.minimum(np.maximum(5 - plan.starts, 1), 2))
    np.testing.assert_array_equal(outcomes.cut, plan.starts < 3)
    simulator.reset()
    simulator.env.step(np.zeros(7, np.int64))
    from_the_second = simulator.play_out(
        simulator.take([4]), Plan(*np.zeros((3, 1), np.int64), seed=0), horizon=9, gamma=1.0
    )
    assert (from_the_second.lengths[0], from_the_second.cut[0]) == (2, True)  # a rollout has all of the limit


@pytest.mark.parametrize(("gamma", "horizon"), [(0.0, 9), (0.5, 1), (1.0, 9), (0.5, 9)])
def test_returns_of_a_certain_world(gamma: float, horizon: int) -> None:
    always_first = np.eye(2)[np.zeros(6, int)]
    outcomes = play(simulator_of(CHAIN, always_first), plan := every_pair(CHAIN), gamma=gamma, horizon=horizon)
    for start, action, found in zip(plan.starts, plan.actions, outcomes.returns, strict=True):
        rewards = [CHAIN.reward[start, action], *CHAIN.reward[start + 1 :, 0]][:horizon]
        assert found == sum(gamma**t * reward for t, reward in enumerate(rewards))


def test_watching() -> None:
    ended: list[int] = []
    simulator, plan = simulator_of(), every_pair(RANDOM, rollouts=3)
    simulator.play_out(states_of(simulator.env), plan, horizon=9, gamma=1.0, watch=ended.append)
    assert sum(ended) == len(plan.starts)
    assert max(ended) <= simulator.n_slots


# What is drawn. ---------------------------------------------------------------------------------------------------


def test_actions_are_drawn_by_their_probabilities_and_impossible_ones_never() -> None:
    rows = np.array([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0, 0, 0, 1]])
    # The smallest and the largest number of single precision in [0, 1), those beside steps, and a fine grid.
    edges = [0, 1 - 2**-24, 0.5, 0.5 - 2**-25, 2**-24]
    uniforms = np.concatenate([edges, (np.arange(1000) + 0.5) / 1000]).astype(np.float32)
    for scale in (1, 1 + 3e-7, 1 - 3e-7):  # rounded probabilities sum to almost 1
        for row in rows:
            probabilities = torch.tensor(row * scale, dtype=torch.float32).expand(len(uniforms), -1)
            drawn = _draw(probabilities, uniforms)
            assert (row[drawn] > 0).all()
            frequencies = np.bincount(drawn[len(edges) :], minlength=4) / 1000
            np.testing.assert_allclose(frequencies, row, atol=0.002)


# Playing again. ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["finite", "CartPole-v1", "FrozenLake-v1", "MinAtar/Seaquest-v1"])
def test_a_restored_state_and_the_same_random_numbers_replay_the_same_rewards(env_id: str) -> None:
    env = make_env(RANDOM, 4) if env_id == "finite" else dae.make_vec_env(env_id, 4, seed=0)
    policy = "CnnPolicy" if "MinAtar" in env_id else "MlpPolicy"
    simulator = Simulator(dae.PPO(policy, env, n_steps=8, batch_size=8, device="cpu"), env)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(60)]
    for action in actions[:5]:
        env.step(np.repeat(action, 4))
    (state,) = simulator.take([2])

    def replay(slot: int, seeds: list[int] | None) -> list[Any]:
        seen = [simulator.put([state], [slot], seeds)[0]]
        for action in actions:
            observations, rewards, dones, _ = simulator.env.step(np.repeat(action, 4))
            seen += [observations[slot], rewards[slot], dones[slot]]
        return seen

    def equal(one: list[Any], other: list[Any]) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    reseeded = replay(0, [7])
    assert equal(reseeded, replay(3, [7]))
    assert equal(replay(1, None), replay(2, None))
    assert not equal(reseeded, replay(0, [8])), "episodes end on the way, and the next ones begin by chance"


class DrawsLate(gym.Env[Any, int]):
    """Asks for a random number only when it steps."""

    observation_space, action_space = spaces.Box(0, 1, (1,)), spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), self.np_random.random(), False, False, {}


def test_environments_that_have_drawn_nothing_yet_get_random_numbers_too() -> None:
    env = DummyVecEnv([DrawsLate] * 3)  # without a seed
    simulator = Simulator(dae.PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu"), env)
    (fresh,) = simulator.take([0])
    env.step(np.zeros(3, np.int64))
    (later,) = simulator.take([1])
    plan = Plan(np.arange(2), np.zeros(2, np.int64), np.zeros(2, np.int64), seed=0)
    first, again = (simulator.play_out([fresh, later], plan, horizon=3, gamma=1.0).returns for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first[0] == first[1]


class Noisy(gym.Wrapper[Any, Any, Any, Any]):
    """Adds noise of its own to rewards."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.noise = np.random.default_rng(0)

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, float(reward) - self.noise.random(), *rest


def test_layers_have_random_numbers_of_their_own() -> None:
    inner = Noisy(DrawsLate())
    outer = Noisy(inner)
    env = DummyVecEnv([lambda: outer])
    simulator = Simulator(dae.PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu"), env)
    simulator.put(simulator.take([0]), [0], [5])
    assert outer.noise.random() != inner.noise.random()


# What agents see. -------------------------------------------------------------------------------------------------


def test_dictionaries_of_observations() -> None:
    plan = every_pair(RANDOM, rollouts=5)
    assert_same(play(simulator_of(as_dict=True), plan), play(simulator_of(), plan))


def test_normalised_observations_are_those_of_the_statistics_which_stay() -> None:
    """The same table on x' = (x − mean) / deviation: W x = W (deviation · x') + W mean."""
    plan = every_pair(RANDOM, rollouts=5)
    env = VecNormalize(make_env(RANDOM, 7), norm_reward=False, epsilon=0.0)  # it trains, as long as no one says not to
    env.obs_rms.mean, env.obs_rms.var = np.linspace(-1, 1, 6), np.linspace(0.5, 2, 6)
    model = table_agent(RANDOM, POLICY)
    with torch.no_grad():
        table = model.policy.action_net
        table.bias.copy_(table.weight @ torch.as_tensor(env.obs_rms.mean, dtype=torch.float32))
        table.weight.mul_(torch.as_tensor(np.sqrt(env.obs_rms.var), dtype=torch.float32))
    outcomes = play(Simulator(model, env), plan)
    np.testing.assert_array_equal(env.obs_rms.mean, np.linspace(-1, 1, 6))
    assert_same(outcomes, play(simulator_of(), plan))


def test_observe_shows_states_in_their_order_however_many_there_are() -> None:
    simulator = simulator_of(slots=4)
    states = states_of(simulator.env)
    np.testing.assert_array_equal(simulator.observe(states), np.eye(6))
    assert [index_of(state) for state in states[::-1]] == [5, 4, 3, 2, 1, 0]
    np.testing.assert_allclose(simulator.probabilities(simulator.observe(states)), POLICY, atol=1e-6)


# What is refused. -------------------------------------------------------------------------------------------------


def masked() -> VecEnv:
    env = make_env(RANDOM, 2)
    for each in env.envs:
        each.action_masks = lambda: np.ones(3, bool)
    return env


def stacked_frames() -> VecEnv:
    return DummyVecEnv([lambda: FrameStackObservation(make_env(RANDOM, 1).envs[0], 2)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DummyVecEnv([lambda: gym.make("Pendulum-v1")]), r"the actions are Box.*they must be Discrete"),
        (masked, "the environments mask actions"),
        (lambda: VecFrameStack(make_env(RANDOM, 2), 3), "in a VecFrameStack, which may remember steps"),
        (stacked_frames, "cannot be restored: in their state a deque is not data"),
    ],
)
def test_what_cannot_be_tried_or_restored_is_refused(make: Any, message: str) -> None:
    env = make()
    kind = {"advantage": "gae"} if isinstance(env.action_space, spaces.Box) else {}
    model = dae.PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu", **kind)
    with pytest.raises(UserError, match=message) as caught:
        Simulator(model, env)
    assert "\n" not in str(caught.value)


def test_batches_without_a_way_to_restore_single_environments_are_refused() -> None:
    with pytest.raises(UserError, match="in a VecFrameStack cannot be restored one by one"):
        restorable(VecFrameStack(make_env(RANDOM, 2), 3))


def test_policies_that_do_not_tell_probabilities_are_refused() -> None:
    model = ReferencePPO("MlpPolicy", make_env(RANDOM, 1), advantage="gae", n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(UserError, match="ActorCriticPolicy does not say how probable actions are"):
        Simulator(model, make_env(RANDOM, 1))
