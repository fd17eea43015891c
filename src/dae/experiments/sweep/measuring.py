"""How fast a run would be, from a part of one iteration: some steps of all actors, and a few minibatches."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from stable_baselines3.common.callbacks import BaseCallback

from dae.experiments.config import TrainConfig
from dae.experiments.training.building import make_env, make_model

_MINIBATCHES = 2
_LEAST_STEPS = 2
_ENDLESS = 2**53


def measured_speed(config: TrainConfig, seconds: float) -> float:
    """Return the frames per second of a run with these settings, measured for about so many seconds.

    Making the agents and a first, unmeasured round come on top of that.
    """
    constant = replace(config, anneal=False)  # a rate that falls to 0 within a single update would be warned about
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads or 1)
    try:
        collecting = config.steps * _seconds_of_a_step(constant, seconds / 4)
        frames = config.steps * config.actors
        learning = config.epochs * frames * _seconds_to_learn_a_frame(constant, seconds)
    finally:
        torch.set_num_threads(threads)
    return frames * config.family.frames_per_step / (collecting + learning)


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


def _seconds_of_a_step(config: TrainConfig, seconds: float) -> float:
    """Return what a step of all actors takes, including what is stored of it."""
    env = make_env(config)
    deadline = time.perf_counter() + seconds

    def enough(steps: int) -> bool:
        return steps >= config.steps or (steps > _LEAST_STEPS and time.perf_counter() > deadline)

    steps = _Steps(enough)
    make_model(config, env).learn(_ENDLESS, callback=steps)
    env.close()
    noted = steps.noted[1:] if len(steps.noted) > _LEAST_STEPS else steps.noted  # the first step takes longer
    return (noted[-1] - noted[0]) / (len(noted) - 1)


def _seconds_to_learn_a_frame(config: TrainConfig, seconds: float) -> float:
    """Return what one epoch takes for a frame, from a rollout that fills a few minibatches."""
    needed = _MINIBATCHES * config.batch_size
    steps = min(config.steps, needed)
    small = replace(config, steps=steps, actors=min(config.actors, -(-needed // steps)), epochs=1)
    env = make_env(small)
    model = make_model(small, env)
    # Runs share the cores, but not with what else is going on now: time that a single thread waits does not count.
    clock = time.process_time if config.threads == 1 and model.device.type == "cpu" else time.perf_counter
    frames = small.steps * small.actors
    model.learn(frames)
    deadline = time.perf_counter() + seconds
    taken: list[float] = []  # for an epoch
    while not taken or time.perf_counter() < deadline:
        began = clock()
        model.train()
        taken.append((clock() - began) / model.n_epochs)
        # As many epochs as in a run, if there is time: an update takes some time whatever its size.
        model.n_epochs = max(1, min(config.epochs, int(seconds / 4 / taken[-1])))
    env.close()
    return statistics.median(taken[1:] or taken) / frames
