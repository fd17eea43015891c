"""How fast a run would be, from a part of one iteration: some steps of all actors, and a few minibatches.

Where even that would take long (emulators that are slow to start, a deep network), fewer actors and a part of a
minibatch are measured, and the rest is taken to be as fast.
"""

import contextlib
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from stable_baselines3.common.callbacks import BaseCallback

from dae.agent import PPO
from dae.experiments.config import TrainConfig
from dae.experiments.training.building import make_env, make_model

_MINIBATCHES = 2
_LEAST_STEPS = 2
_FEW_ACTORS, _SMALL_MINIBATCH = 16, 64  # enough to share what a step or an update costs whatever its size
_LONG = 10.0  # seconds: what takes longer with all actors, or with a whole minibatch, is measured with fewer
_ENDLESS = 2**53


def measured_speed(config: TrainConfig, seconds: float) -> float:
    """Return the frames per second of a run with these settings, measured for about so many seconds.

    Making the agents and a first, unmeasured round come on top of that.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads or 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes: those of a part, which are not the run's
            collecting = config.steps * _seconds_of_a_step(config, seconds / 4)
            steps = config.steps * config.actors
            learning = config.epochs * steps * _seconds_to_learn_a_step(config, seconds)
    finally:
        torch.set_num_threads(threads)
    return steps * config.family.frames_per_step / (collecting + learning)


def _seconds_of_a_step(config: TrainConfig, seconds: float) -> float:
    """Return what a step of all actors takes, including what is stored of it."""
    few = replace(config, actors=min(config.actors, _FEW_ACTORS))
    times = config.actors / few.actors
    if times > 1:
        _seconds_of_a_step_together(replace(config, actors=2), 0.0)  # what is loaded and compiled only once
        began = time.perf_counter()
        of_few = _seconds_of_a_step_together(few, 0.0)
        if times * (time.perf_counter() - began) > _LONG:
            return times * of_few
    return _seconds_of_a_step_together(config, seconds)


class _Steps(BaseCallback):
    """Notes when a rollout starts and when its steps end, and stops the agent when there are enough."""

    def __init__(self, enough: Callable[[int], bool]) -> None:
        super().__init__()
        self._enough, self.noted = enough, list[float]()

    def _on_rollout_start(self) -> None:
        self.noted.append(time.perf_counter())

    def _on_step(self) -> bool:
        self.noted.append(time.perf_counter())
        return not self._enough(len(self.noted) - 1)


def _seconds_of_a_step_together(config: TrainConfig, seconds: float) -> float:
    deadline = time.perf_counter() + seconds

    def enough(steps: int) -> bool:
        return steps >= config.steps or (steps > _LEAST_STEPS and time.perf_counter() > deadline)

    steps = _Steps(enough)
    with contextlib.closing(make_env(config)) as env:
        make_model(config, env).learn(_ENDLESS, callback=steps)
    noted = steps.noted[1:] if len(steps.noted) > _LEAST_STEPS else steps.noted  # the first step takes longer
    return (noted[-1] - noted[0]) / (len(noted) - 1)


def _seconds_to_learn_a_step(config: TrainConfig, seconds: float) -> float:
    """Return what one epoch takes for a step."""
    small = replace(config, batch_size=min(config.batch_size, _SMALL_MINIBATCH))
    if small.batch_size < config.batch_size:
        of_small = _seconds_to_learn_a_step_of(small, 1, 0.0)
        if _MINIBATCHES * config.batch_size * of_small > _LONG / 4:  # it is learned from several times
            return of_small
    return _seconds_to_learn_a_step_of(config, _MINIBATCHES, seconds)


def _seconds_to_learn_a_step_of(config: TrainConfig, minibatches: int, seconds: float) -> float:
    """Return what one epoch takes for a step, from a rollout that fills a few minibatches."""
    needed = minibatches * config.batch_size
    length = min(config.steps, needed)
    small = replace(config, steps=length, actors=min(config.actors, -(-needed // length)), epochs=1)
    with contextlib.closing(make_env(small)) as env:
        return _seconds_of_an_epoch(make_model(small, env), config, seconds) / (small.steps * small.actors)


def _seconds_of_an_epoch(model: PPO, config: TrainConfig, seconds: float) -> float:
    # Runs share the cores, but not with what else is going on now: time that a single thread waits does not count.
    clock = time.process_time if config.threads == 1 and model.device.type == "cpu" else time.perf_counter
    model.learn(model.n_steps * model.n_envs)
    deadline = time.perf_counter() + seconds
    taken: list[float] = []  # for an epoch
    while not taken or time.perf_counter() < deadline:
        began = clock()
        model.train()
        taken.append((clock() - began) / model.n_epochs)
        # As many epochs as in a run, if there is time: an update takes some time whatever its size.
        model.n_epochs = max(1, min(config.epochs, int(seconds / 4 / taken[-1])))
    return statistics.median(taken[1:] or taken)
