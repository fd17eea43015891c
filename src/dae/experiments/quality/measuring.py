"""The meter: states that the agent meets, the truth about them, and what each estimator says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.utils import obs_as_tensor, set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.catalog import describe, estimator_names, require_estimator
from dae.errors import InvalidValue
from dae.experiments.monte_carlo import ActionValues, Simulator, action_values
from dae.experiments.quality.critics import Critic, Rows, critic_of, new_critic, uncorrected
from dae.experiments.quality.measures import Floats, Quality, Truth, judge
from dae.experiments.scoring import own_randomness
from dae.rules import COUNT, ENOUGH, HORIZON, NATURAL, require
from dae.runs.settings import SEED

OWN = "own"  # the agent's own critic, as training left it
NETWORK = "-network"  # what the network of a corrected estimator says, without the correction
Watch = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Judged:
    """The advantages of one critic, and how good they are."""

    name: str  # OWN, or the estimator of a critic that was trained anew; with NETWORK at its end, without correction
    label: str
    estimates: Floats  # (S, A, R)
    quality: Quality


@dataclass(frozen=True)
class Measurement:
    """The truth about some states of an agent, and how well critics know it."""

    states: list[bytes] = field(repr=False)  # which `put_states` of the environments restores
    truth: ActionValues
    sure_pairs: int  # pairs of actions that the truth tells apart
    sure_states: int  # states whose best action it knows
    judged: list[Judged]

    def __getitem__(self, name: str) -> Judged:
        return {judged.name: judged for judged in self.judged}[name]


def measure_quality(
    model: PPO,
    env: VecEnv,
    *,
    estimators: Sequence[str] | None = None,
    states: int = 128,
    rollouts: int = 64,
    horizon: int = 512,
    steps: int = 400_000,
    probes: int = 4,
    seed: int = 0,
    watch: Watch = lambda phase, done, total: None,
) -> Measurement:
    """Measure how good an agent's advantages are, and those of other estimators for the same policy.

    `env` can be restored (`dae.envs.restoring`), and rewards the agent as in training; it is used up. The truth about
    `states` states of the agent's own play comes from `rollouts` rollouts of each action, of at most `horizon` steps.
    A critic of each estimator, with a network like the agent's, learns from the same rollouts, of `steps` steps in
    all, as the paper's estimators do; the policy stays as it is. Then all critics, the agent's own too, look at the
    same `probes` further rollouts of each action in each state: an estimate is what the policy would have learned from.

    Everything follows from `seed`. `watch` is told the phase, and how much of it is done.
    """
    wanted = [estimators] if isinstance(estimators, str) else estimators
    names = _fitting(model) if wanted is None else [require_estimator(name).name for name in wanted]
    for name in names:
        if not describe(name).accepts(model.action_space):
            raise InvalidValue(f"estimator {name!r} cannot work with actions {model.action_space}")
    require("states", states, COUNT)
    require("probes", probes, COUNT)
    require("horizon", horizon, HORIZON)
    require("seed", seed, SEED)
    require("rollouts", rollouts, ENOUGH)
    require("steps", steps, NATURAL)
    with own_randomness(seed, model.device):
        simulator = Simulator(model, env)
        critics: dict[str, Critic] = {OWN: critic_of(model)}
        critics |= _taught(simulator, names, steps, seed, watch) if names else {}
        for name, critic in list(critics.items()):
            plain = uncorrected(critic)
            critics |= {} if plain is None else {name + NETWORK: plain}
        met = _states_met(simulator, states, horizon, seed, watch)
        truth = _truth(simulator, met, rollouts, horizon, seed, watch)
        estimates = _estimates(simulator, met, critics, probes, seed, watch)
    return Measurement(
        met,
        truth.values,
        sure_pairs=int((truth.order > 0).sum()),
        sure_states=int((truth.best >= 0).sum()),
        judged=[Judged(name, _label(name, model), found, judge(found, truth)) for name, found in estimates.items()],
    )


def _fitting(model: PPO) -> list[str]:
    """Return the estimators that work with an agent's actions, its own first."""
    fitting = [name for name in estimator_names() if describe(name).accepts(model.action_space)]
    return sorted(fitting, key=lambda name: name != model.advantage)


def _label(name: str, model: PPO) -> str:
    plain = name.removesuffix(NETWORK)
    label = f"own {describe(model.advantage).label}" if plain == OWN else describe(plain).label
    return label + " network" * (plain != name)


def _taught(simulator: Simulator, names: Sequence[str], steps: int, seed: int, watch: Watch) -> dict[str, Critic]:
    """Return critics that have learned from the same rollouts, whichever others learn beside them."""
    model, rows = simulator.model, Rows(simulator)
    critics = {}
    for name in names:
        set_random_seed(_seed(seed, "networks"))
        critics[name] = new_critic(model, name)
    rate = float(model.lr_schedule(1.0))
    observations = simulator.reset(_seed(seed, "learning"))
    iterations = -(-steps // (simulator.n_slots * rows.rollout.n_steps))
    total = iterations * len(names)
    watch("learning", 0, total)
    for i in range(iterations):
        set_random_seed(_seed(seed, "learning", i))
        observations = rows.collect(observations)
        for k, critic in enumerate(critics.values()):
            set_random_seed(_seed(seed, "minibatches", i))
            rows.teach(critic, rate * (1 - i / iterations))
            watch("learning", i * len(names) + k + 1, total)
    return critics


def _states_met(simulator: Simulator, count: int, horizon: int, seed: int, watch: Watch) -> list[bytes]:
    """Return states of the agent's play, each step of each environment with the same chance.

    The first `horizon` steps are left out, in which all environments are near the beginning of an episode.
    """
    model, slots = simulator.model, simulator.n_slots
    steps = max(horizon, -(-count // slots))
    set_random_seed(_seed(seed, "playing"))
    chosen = np.sort(np.random.default_rng(_seed(seed, "states")).choice(steps * slots, count, replace=False))
    observations = simulator.reset(_seed(seed, "playing"))
    met: list[bytes] = []
    watch("playing", 0, horizon + steps)
    for t in range(-horizon, steps):
        here = chosen[chosen // slots == t] % slots
        met += simulator.take(here.tolist()) if here.size else []
        _, acted, _ = model.act(observations, None)
        observations = simulator.env.step(acted.actions.cpu().numpy())[0]
        watch("playing", t + horizon + 1, horizon + steps)
    return met


def _truth(
    simulator: Simulator, states: Sequence[bytes], rollouts: int, horizon: int, seed: int, watch: Watch
) -> Truth:
    total, done = len(states) * simulator.n_actions * rollouts, 0
    watch("rollouts", 0, total)

    def count(ended: int) -> None:
        nonlocal done
        done += ended
        watch("rollouts", done, total)

    values = action_values(
        simulator,
        states,
        rollouts=rollouts,
        horizon=horizon,
        gamma=simulator.model.gamma,
        seed=_seed(seed, "truth"),
        share_among_actions=True,
        watch=count,
    )
    seen = obs_as_tensor(simulator.observe(states), simulator.model.device)
    return Truth(values, simulator.model, seen)


def _estimates(
    simulator: Simulator,
    states: Sequence[bytes],
    critics: dict[str, Critic],
    probes: int,
    seed: int,
    watch: Watch,
) -> dict[str, Floats]:
    """Return what critics say of each action in each state, (S, A, R), from rollouts that all of them look at."""
    shape = (len(states), simulator.n_actions, probes)
    starts, actions, _ = (index.ravel() for index in np.indices(shape))
    rows, slots = Rows(simulator), simulator.n_slots
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in critics}
    for begin in range(0, starts.size, slots):
        # The last rows repeat the first ones, so that all environments have a state.
        chosen = np.arange(begin, begin + slots) % starts.size
        set_random_seed(_seed(seed, "probes", begin))
        seeds = np.random.default_rng(_seed(seed, "environments of probes", begin)).integers(2**63, size=slots).tolist()
        rows.collect(simulator.put([states[i] for i in starts[chosen]], range(slots), seeds), actions[chosen])
        kept = min(slots, starts.size - begin)
        for name, critic in critics.items():
            found[name].append(rows.first_estimates(critic)[:kept].double().cpu().numpy())
        watch("probing", begin + kept, starts.size)
    return {name: np.concatenate(parts).reshape(shape) for name, parts in found.items()}


def _seed(seed: int, purpose: str, number: int = 0) -> int:
    """Return a seed of its own for each purpose, and each number within it."""
    return int(np.random.SeedSequence([seed, *purpose.encode(), number]).generate_state(1)[0])
