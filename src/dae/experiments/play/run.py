"""`dae play`: find the run, measure its agent, record an episode."""

import numpy as np
from numpy.typing import NDArray

from dae.envs import require_trust
from dae.errors import UserError
from dae.experiments.film import CannotRecord, record_episode
from dae.experiments.loading import Run, find_run, load_run
from dae.experiments.play.config import PlayConfig
from dae.experiments.scoring import MOST_ENVS, TooLong, measure
from dae.runs.evaluations import standard_error
from dae.terminal.progress import Pace, WorkProgress
from dae.text import decimals_for, plural, with_error

_MOST_STEPS = 1_000_000  # of each environment
Scores = NDArray[np.float64]


def play(config: PlayConfig) -> int:
    """Print mean ± standard error of the scores, and write a film."""
    run = load_run(find_run(config.run, "play"), best=config.best, trust=config.trust)
    require_trust(run.config.env, run.folder.path, trust=config.trust)  # before the agent is loaded
    if config.out is None:
        run.folder.require_plain()
    model = run.model
    scores, lengths = _measure(run, config)
    how = "greedy" if config.greedy else "stochastic"
    error = standard_error(scores)
    score = with_error(float(scores.mean()), error, decimals_for([error], 2))
    trained = plural(model.num_timesteps * run.config.family.frames_per_step, "frame")
    print(
        f"{run.config.env}, {'the best agent, ' * config.best}{trained} of training, "
        f"{plural(len(scores), f'{how} episode')}: score {score}{' (mean ± standard error)' * (len(scores) > 1)}, "
        f"length {plural(round(float(lengths.mean())), 'step')}",
        flush=True,
    )
    if config.film != "none":
        name = f"episode-{'best-' * config.best}{how}-seed-{config.seed}.{config.film}"
        path = (config.out or run.folder.path / "play") / name
        try:
            film = record_episode(
                model, run.config, path, seed=config.seed, greedy=config.greedy, statistics=run.statistics
            )
            print(f"an episode ({film}): {film.path}")
        except CannotRecord as reason:
            print(f"no recording: {reason}")
    return 0


def _measure(run: Run, config: PlayConfig) -> tuple[Scores, Scores]:
    """Return the scores and lengths of some episodes."""
    env = run.make_env(min(config.episodes, MOST_ENVS), config.seed)
    pace = Pace(0, unknown="")
    with WorkProgress(config.episodes, 0, "episodes") as progress:

        def watch(ended: int, steps: int) -> None:
            if 4 * ended >= config.episodes:  # the first ones to end are the short ones, and say little
                pace.mark(ended)
            told = plural(steps, "step")
            progress.update(ended, "playing", [(told, told)], pace)

        try:
            scores, lengths = measure(
                run.model, env, config.episodes, greedy=config.greedy, most_steps=_MOST_STEPS, watch=watch
            )
        except TooLong as error:
            raise UserError(f"{error}: ask for fewer --episodes") from error
    env.close()
    return scores, lengths
