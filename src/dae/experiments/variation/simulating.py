"""The environments that policies play in, and how fast they play."""

import contextlib
import time
from collections.abc import Iterator

import numpy as np
from gymnasium import spaces

from dae.agent import PPO
from dae.agent.settings import check_observations
from dae.envs import make_vec_env
from dae.envs.restoring import restorable
from dae.errors import UserError
from dae.experiments.monte_carlo import Plan, Simulator
from dae.experiments.training.building import make_model
from dae.experiments.variation.config import StudyPlan
from dae.experiments.wrappers import innermost


def require_suitable(plan: StudyPlan) -> None:
    """Refuse environments in which one cannot try every action from a state that is restored exactly."""
    training = plan.training
    if training.normalize_observations or training.normalize_rewards:
        raise UserError("normalize_… is True: its statistics change with every policy, and values cannot be compared")
    with contextlib.closing(make_vec_env(training.env, 1, 0, **training.env_options)) as one:
        check_observations(one.observation_space)
        if not isinstance(one.action_space, spaces.Discrete):
            raise UserError(
                f"{training.env} has the actions {one.action_space}: they must be Discrete, to try all of them"
            )
        restorable(innermost(one))
    if not training.family.can_be_restored(training.env_id, **training.env_options):
        raise UserError(f"{training.env} cannot be restored exactly, so that its states cannot be met again")


@contextlib.contextmanager
def simulator_of(plan: StudyPlan, agent: PPO | None = None) -> Iterator[Simulator]:
    """Make environments for the rollouts of a study; without an agent, one that has not learned yet plays."""
    training = plan.training
    slots = training.family.simulated_at_once
    with contextlib.closing(make_vec_env(training.env, slots, 0, **training.env_options)) as env:
        yield Simulator(agent or make_model(training, env), env)


def rollout_speed(simulator: Simulator, seconds: float) -> float:
    """Return steps per second of rollouts, measured for at least so many seconds."""
    slots = np.arange(simulator.n_slots)
    states = simulator.take(slots.tolist())
    plan = Plan(slots, np.zeros_like(slots), slots, 0)
    simulator.play_out(states, plan, horizon=2, gamma=1.0)  # what is loaded and compiled only once
    steps, began = 0, time.perf_counter()
    while not steps or time.perf_counter() - began < seconds:
        steps += int(simulator.play_out(states, plan, horizon=16, gamma=1.0).lengths.sum())
    return steps / (time.perf_counter() - began)
