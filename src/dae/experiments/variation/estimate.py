"""How long a study will take, measured on this machine before it begins."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from dae.experiments.sweep.measuring import measured_speed
from dae.experiments.variation.simulating import require_suitable, rollout_speed, simulator_of
from dae.experiments.variation.study import Study
from dae.terminal.live import passing_lines
from dae.terminal.progress import format_duration
from dae.text import plural

_SECONDS = 1.0  # of measuring, each time


def describe_time(studies: Sequence[Study]) -> str:
    """Say how long what is left of studies will take; what cannot be studied is refused."""
    left = [study for study in studies if study.iterations_left or study.policies_left]
    if not left:
        return "nothing is left to train or to play"
    for study in left:
        require_suitable(study.plan)
    lines, total = [], 0.0
    training_speed = 0.0  # of the first game: the others have the same settings
    with passing_lines() as show:
        for study in left:
            show(f"measuring how fast {study.plan.name} is")
            if study.iterations_left and not training_speed:
                training = study.plan.training
                threads = training.threads or torch.get_num_threads()
                training_speed = measured_speed(replace(training, threads=threads), _SECONDS)
            told, seconds = _time_of(study, training_speed)
            lines.append(told)
            total += seconds
    every = f", all {len(left)} games together" if len(left) > 1 else ""
    return "\n".join([*lines, f"at most {format_duration(total)}{every}; rollouts that end early take less"])


def _time_of(study: Study, training_speed: float) -> tuple[str, float]:
    plan, parts, seconds = study.plan, [], 0.0
    if study.iterations_left:
        frames = study.iterations_left * plan.frames_per_iteration
        seconds += frames / training_speed
        parts.append(f"training {frames:,} frames at {training_speed:,.0f}/s, {format_duration(seconds)}")
    if study.policies_left:
        with simulator_of(plan) as simulator:
            rollouts = study.policies_left * plan.rollouts_of_a_policy(simulator.n_actions)
            speed = rollout_speed(simulator, _SECONDS)
        playing = rollouts * plan.config.horizon / speed
        seconds += playing
        parts.append(
            f"{plural(rollouts, 'rollout')} of at most {plural(plan.config.horizon, 'step')} at {speed:,.0f} steps/s, "
            f"at most {format_duration(playing)}"
        )
    return f"{plan.name}: {'; '.join(parts)}", seconds
