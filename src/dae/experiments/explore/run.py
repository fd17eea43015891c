"""`dae explore`: play episodes, ask what other actions would have led to, and write the page."""

import contextlib
import csv
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from dae import __version__
from dae.catalog import describe
from dae.envs import require_trust, trust_option
from dae.envs.restoring import Restorable, restorable
from dae.errors import UserError, one_line
from dae.experiments.explore.asking import ask, decisions_to_check, look_ahead
from dae.experiments.explore.config import ExploreConfig
from dae.experiments.explore.playing import Played, play_episode
from dae.experiments.film import CannotRecord, make_visible, record_episode
from dae.experiments.loading import Run, find_run, load_run
from dae.experiments.monte_carlo import Simulator
from dae.experiments.scoring import own_randomness
from dae.experiments.wrappers import innermost
from dae.explorer.data import Exploration, csv_rows, to_json
from dae.explorer.page import is_page, render
from dae.files import write_atomically
from dae.terminal.boundary import announce
from dae.terminal.progress import WorkProgress
from dae.terminal.signals import Stopped, StopSignals
from dae.text import plural, short_number

_MOST_ENVS = 256  # of the rollouts


def explore(config: ExploreConfig) -> int:
    """Write the page and its data, and return the exit code."""
    if config.threads:
        torch.set_num_threads(config.threads)
    run = load_run(find_run(config.run, "explore"), best=config.best, trust=config.trust)
    require_trust(run.config.env, run.folder.path, trust=config.trust)
    if config.out is None:
        run.folder.require_plain()
    if not isinstance(run.model.action_space, spaces.Discrete):
        raise UserError(f"the actions are {run.model.action_space}: the explorer shows Discrete ones")
    if run.config.normalize_rewards:
        raise UserError(
            f"{run.folder.path} was trained with normalised rewards, whose scale changed all the time: its values are "
            "not those of returns"
        )
    page = config.out / run.folder.explorer.name if config.out else run.folder.explorer
    _require_own(page)
    run.announce_if_training()
    with StopSignals(), own_randomness(config.seed, run.model.device):
        try:
            _write(_explore(run, config), page, run, config)
        except Stopped as stopped:
            print(f"stopped by {stopped}; nothing was written", flush=True)
            return stopped.exit_code
    return 0


def _require_own(page: Path) -> None:
    """Refuse to replace a page that is not one of ours."""
    if page.exists() and not is_page(page.read_bytes()):
        raise UserError(f"{page} is not a page of dae explore: choose another --out")


def _explore(run: Run, config: ExploreConfig) -> Exploration:
    model, settings = run.model, run.config
    with _simulating(run, config) as simulator:
        played, names = _play(run, config, with_states=simulator is not None)
        source: Literal["network", "look-ahead"] | None = "network" if model.estimator.info.models_all_actions else None
        if source is None and simulator is not None:
            source = "look-ahead"
            played = _with_look_ahead(simulator, played, model.gamma)
        if simulator is not None and config.what_if:
            played = _with_truths(simulator, played, config, model.gamma)
    return Exploration(
        env=settings.env,
        run=str(run.folder.path),
        advantage=model.advantage,
        label=describe(model.advantage).label,
        source=source,
        gamma=float(model.gamma),
        frames=model.num_timesteps * settings.family.frames_per_step,
        greedy=config.greedy,
        action_names=names,
        command=_command(run, config),
        version=__version__,
        episodes=[each.episode for each in played],
    )


@contextlib.contextmanager
def _simulating(run: Run, config: ExploreConfig) -> Iterator[Simulator | None]:
    """Make environments that can be brought to any state; None, and a line that says why, where there are none."""
    settings = run.config
    env: VecEnv | None = None
    if not config.what_if and run.model.estimator.info.models_all_actions:
        yield None
        return
    try:
        try:
            if not settings.family.can_be_restored(settings.env_id, **settings.env_options):
                raise UserError(f"{settings.env} cannot be restored exactly")
            env = run.make_env(min(settings.family.simulated_at_once, _MOST_ENVS), config.seed)
            simulator: Simulator | None = Simulator(run.model, env)
        except UserError as reason:
            announce(f"other actions are not tried: {one_line(reason)}")
            simulator = None
        yield simulator
    finally:
        if env is not None:
            env.close()


def _play(run: Run, config: ExploreConfig, *, with_states: bool) -> tuple[list[Played], list[str]]:
    env, drawn = _visible(run, config)
    restorer: Restorable | None = restorable(innermost(env)) if with_states else None
    played = []
    try:
        with WorkProgress(config.episodes, 0, "episodes") as progress:
            for k in range(config.episodes):

                def watch(steps: int, done: int = k) -> None:
                    progress.reach(done, "playing", plural(steps, "step"))

                with own_randomness(config.seed + k, run.model.device):
                    played.append(
                        play_episode(
                            run.model,
                            run.config.family,
                            env,
                            restorer,
                            seed=config.seed + k,
                            greedy=config.greedy,
                            longest=config.steps,
                            drawn=drawn,
                            watch=watch,
                        )
                    )
        names = run.config.family.action_names(env)
        return played, [f"action {name}" if name.isdigit() else name for name in names]
    finally:
        env.close()


def _visible(run: Run, config: ExploreConfig) -> tuple[VecEnv, bool]:
    """Make an environment that can be drawn, or else one that cannot."""
    try:
        return make_visible(run.config, config.seed, run.statistics), True
    except CannotRecord as reason:
        announce(f"no pictures: {one_line(reason)}")
        return run.make_env(1, config.seed), False


def _with_look_ahead(simulator: Simulator, played: list[Played], gamma: float) -> list[Played]:
    found = []
    with WorkProgress(sum(len(each.states) for each in played), 0, "steps") as progress:
        for each in played:
            ahead = look_ahead(
                simulator,
                each,
                gamma,
                each.episode.seed,
                watch=lambda steps: progress.advance(steps, "looking ahead", ""),
            )
            found.append(replace(each, episode=replace(each.episode, advantages=ahead)))
    return found


def _with_truths(simulator: Simulator, played: list[Played], config: ExploreConfig, gamma: float) -> list[Played]:
    decisions = decisions_to_check([each.episode for each in played], config.what_if)
    total = len(decisions) * simulator.n_actions * config.rollouts
    with WorkProgress(total, 0, "rollouts") as progress:
        truths = ask(
            simulator,
            played,
            decisions,
            rollouts=config.rollouts,
            horizon=config.horizon,
            gamma=gamma,
            seed=config.seed,
            watch=lambda ended: progress.advance(ended, "what if", plural(len(decisions), "decision")),
        )
    return [replace(each, episode=replace(each.episode, truths=truths.get(k, []))) for k, each in enumerate(played)]


def _command(run: Run, config: ExploreConfig) -> str:
    """Return the command that makes this page again."""
    default = ExploreConfig(config.run)
    words = ["dae", "explore", str(run.folder.path)]
    for name in ("episodes", "steps", "what_if", "rollouts", "horizon", "seed"):
        if getattr(config, name) != getattr(default, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    words += [f"--{name}" for name in ("greedy", "best") if getattr(config, name)]
    return shlex.join(words) + trust_option(run.config.env)


def _write(exploration: Exploration, page: Path, run: Run, config: ExploreConfig) -> None:
    folder = page.parent
    write_atomically(page, render(exploration).encode(errors="replace"))  # names of folders may not be text
    write_atomically(folder / "explore.json", json.dumps(to_json(exploration), allow_nan=False).encode() + b"\n")
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(csv_rows(exploration))
    write_atomically(folder / "explore.csv", table.getvalue().encode(errors="replace"))
    scores = [episode.score for episode in exploration.episodes]
    steps = sum(len(episode.actions) for episode in exploration.episodes)
    print(
        f"{exploration.env}, {plural(exploration.frames, 'frame')} of training: {plural(len(scores), 'episode')} of "
        f"{plural(steps, 'step')} in all, scores "
        f"{', '.join(map(short_number, sorted(scores, reverse=True)))}"
    )
    for wanted, kind in ((config.gif, "gif"), (config.mp4, "mp4")):
        if wanted:
            _record(run, config, folder / f"episode.{kind}")
    print(f"page  {page} ({page.stat().st_size / 1e6:.1f} MB; open it in a browser)")
    print(f"data  {folder / 'explore.json'}, {folder / 'explore.csv'}", flush=True)


def _record(run: Run, config: ExploreConfig, path: Path) -> None:
    try:
        film = record_episode(
            run.model,
            run.config,
            path,
            seed=config.seed,
            greedy=config.greedy,
            longest=config.steps,
            statistics=run.statistics,
        )
        print(f"clip  {film.path} ({film})")
    except CannotRecord as reason:
        announce(f"no clip: {one_line(reason)}")
