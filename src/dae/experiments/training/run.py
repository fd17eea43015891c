"""`dae train`: the course of a run, through every interruption."""

import contextlib
import traceback
import warnings
from dataclasses import dataclass

import torch

from dae.agent import PPO, NotFiniteError, parallel
from dae.envs import trust_option
from dae.errors import InUse, UserError, one_line
from dae.experiments.config import TrainConfig
from dae.experiments.loading import load_run
from dae.experiments.normalization import take_statistics
from dae.experiments.provenance import made_with
from dae.experiments.training.building import make_env, make_model, share_of
from dae.experiments.training.callback import TrainingCallback
from dae.experiments.training.checkpointer import Checkpointer
from dae.experiments.training.companion import Companion, Enough
from dae.experiments.training.evaluating import Evaluator
from dae.experiments.training.extending import as_extended, extend, is_longer, require_same_but_longer
from dae.experiments.training.finishing import play_on
from dae.experiments.training.recorder import FolderRecorder, Recorder
from dae.experiments.training.state import Counters, require_as_many_processes, restore, share_checkpoint
from dae.experiments.training.summary import describe_scores, draw_pictures, next_steps
from dae.experiments.training.tracking import tracked
from dae.runs import Checkpoint, FolderLost, RunFolder, State
from dae.terminal.boundary import announce
from dae.terminal.signals import Stopped, StopSignals
from dae.text import plural


def train(config: TrainConfig, companion: Companion | None = None) -> int:
    """Start or continue a run and return the exit code; started by torchrun, as one of several processes."""
    with parallel.joined(config.device):
        try:
            return _train(config, companion or Companion())
        except UserError as error:
            if parallel.rank() == 0:
                raise
            return error.exit_code  # the first process says what is wrong


def _train(config: TrainConfig, companion: Companion) -> int:
    folder = RunFolder(config.folder)
    config = parallel.from_first(lambda: as_extended(config, folder))
    if parallel.from_first(lambda: _is_finished(folder, config)):
        return parallel.from_first(lambda: _look_at_finished(folder, config))
    with contextlib.ExitStack() as held:
        session = _open(config, folder, companion, held)
        with session.signals:
            return _run(session)


@dataclass(frozen=True)
class _Session:
    """A run while it runs, in one process."""

    config: TrainConfig
    folder: RunFolder
    agent: PPO
    recorder: Recorder
    evaluator: Evaluator
    companion: Companion
    checkpointer: Checkpointer
    signals: StopSignals
    pending: bool  # it continues before an update


def _run(session: _Session) -> int:
    """Train to the end, or until something stops it; either way the run can go on from there."""
    config, agent, recorder, signals = session.config, session.agent, session.recorder, session.signals
    recorder.say(_first_line(session))
    played = 0  # without learning, at the end
    try:
        with recorder, session.evaluator:
            total = -(-config.frames // config.family.frames_per_step)
            if session.pending:
                agent.train_on_restored(total)
                session.evaluator.between_iterations()
                session.checkpointer.take()
                session.checkpointer.save()
            steps = total - agent.num_timesteps
            if steps > 0:
                _warn_of_nothing_learned(config, recorder)
                callback = TrainingCallback(
                    recorder, session.evaluator, session.companion, session.checkpointer, signals
                )
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", message=r"learn\(\d+\) covers one rollout")  # it was said
                    agent.learn(steps, callback=callback, reset_num_timesteps=False, log_interval=1)
            if config.finishing:
                played = play_on(config, agent, recorder, signals)
    except Enough:
        _save_and_stop(session)
        return 0
    except Stopped as stopped:
        return _stop(session, stopped)
    except (Exception, SystemExit) as error:  # an environment may end the program
        return _fail(session, error)
    recorder.write_status(State.FINISHED)
    return parallel.from_first(lambda: _conclude(session, played))


def _warn_of_nothing_learned(config: TrainConfig, recorder: Recorder) -> None:
    per_step = config.family.frames_per_step
    if config.anneal and recorder.frames == 0 and config.frames <= config.steps * config.actors * per_step:
        each = f" x {per_step} frames" if per_step > 1 else ""
        announce(
            f"{plural(config.frames, 'frame')} are one rollout ({config.steps} steps x {config.actors} actors{each}), "
            "within which the learning rate falls to 0: nothing is learned; use more --frames, or --no-anneal"
        )


def _stop(session: _Session, stopped: Stopped) -> int:
    """Save the state, and say how to continue."""
    _save_and_stop(session)
    saved = session.folder.checkpoints.newest_frames()
    tracking = "" if session.config.track == TrainConfig.track else f" --track {session.config.track}"
    command = session.companion.continue_with or (
        f"dae train --resume {session.folder.path}{tracking}{trust_option(session.config.env)}"
    )
    session.recorder.say(f"stopped by {stopped}; it continues at frame {saved:,} with: {command}")
    return stopped.exit_code


def _save_and_stop(session: _Session) -> None:
    try:
        session.checkpointer.save()
        session.recorder.write_status(State.STOPPED)
    except (OSError, FolderLost) as error:
        announce(f"the last checkpoint could not be written: {one_line(error)}")


def _fail(session: _Session, error: BaseException) -> int:
    """Save the last good state, and report the error in one line; an unexpected one keeps its traceback."""
    try:
        session.folder.lock.keep()
    except FolderLost as lost:  # which is why whatever it was went wrong
        error = lost
    foreseen = isinstance(error, NotFiniteError | UserError | OSError)
    message = one_line(error) if foreseen else f"{type(error).__name__}: {one_line(error)}"
    if parallel.size() > 1 and not foreseen:
        message += " (or another process of this run has ended: see its output)"
    details = ""
    if not isinstance(error, FolderLost):
        with contextlib.suppress(OSError, FolderLost):  # a full disk is what may have gone wrong
            session.checkpointer.save()
            session.recorder.write_status(State.FAILED, message)
            details = "" if foreseen else session.recorder.keep_traceback()
    announce(f"training stopped after {plural(session.recorder.frames, 'frame')}: {message}{details}")
    return 1


def _conclude(session: _Session, played: int) -> int:
    """Print and draw the results. The run is finished: an error here does not change that."""
    recorder = session.recorder
    told = describe_scores(
        session.folder.read_episodes(),
        recorder.seconds,
        budget=session.config.frames,
        trained=recorder.frames,
        played=played,
    )
    print(told, flush=True)
    statistics = take_statistics(session.agent.env)
    code = _draw(session.config, session.folder, session.agent, statistics) if session.config.pictures else 0
    print(next_steps(session.config, session.folder, session.agent), flush=True)
    return code


def _draw(config: TrainConfig, folder: RunFolder, agent: PPO, statistics: bytes | None) -> int:
    folder.require_plain()
    try:
        print("drawing pictures ...", flush=True)
        print("\n".join(draw_pictures(config, folder, agent, statistics)), flush=True)
    except Stopped as stopped:
        print(f"stopped by {stopped}; the run is finished, and the same command draws its pictures", flush=True)
        return stopped.exit_code
    except Exception as error:
        folder.error.write_text(traceback.format_exc(), encoding="utf-8", errors="replace")
        announce(
            f"the pictures could not be drawn ({type(error).__name__}: {one_line(error)}); details: {folder.error}"
        )
    return 0


# How a run begins. ---------------------------------------------------------------------------------------------------


def _is_finished(folder: RunFolder, config: TrainConfig) -> bool:
    """Look at a folder without touching it; one with other settings is refused."""
    if not folder.exists:
        return False
    require_same_but_longer(folder, config)
    return folder.read_status().state is State.FINISHED and not is_longer(config, folder)


def _look_at_finished(folder: RunFolder, config: TrainConfig) -> int:
    print(f"{folder.path} is finished already; choose another --seed or --out for a new run")
    if not config.pictures or (folder.curve.exists() and folder.film.exists()):
        return 0
    with StopSignals():
        run = load_run(folder.path)
        return _draw(config, folder, run.model, run.statistics)


def _open(config: TrainConfig, folder: RunFolder, companion: Companion, held: contextlib.ExitStack) -> _Session:
    """Make what a run needs, or restore it from the newest checkpoint. Errors are found before anything is written."""
    begun = parallel.broadcast(folder.exists)
    share = share_of(config, parallel.size())
    if config.threads:
        torch.set_num_threads(config.threads)
    env = parallel.together(lambda: make_env(share))
    held.callback(env.close)
    agent, counters = None if begun else make_model(share, env), Counters()
    checkpoint = share_checkpoint(parallel.on_first(lambda: _open_folder(folder, config, begun, held)))
    if checkpoint is not None:
        agent, counters = restore(config, folder, env, checkpoint)
    elif agent is None:
        agent = make_model(share, env)
    exact = config.family.can_be_restored(config.env_id, **config.env_options)
    writers = held.enter_context(tracked(config, folder)) if parallel.rank() == 0 else []
    recorder = (FolderRecorder if parallel.rank() == 0 else Recorder)(
        config, folder, agent, counters, companion.ends_at
    )
    agent.logger.output_formats += writers
    evaluator = Evaluator(config, folder, agent, counters, recorder)
    checkpointer = Checkpointer(config, agent, counters, recorder, exact=exact)
    signals = StopSignals(at_once=parallel.size() == 1)
    pending = checkpoint is not None and checkpoint.pending
    return _Session(config, folder, agent, recorder, evaluator, companion, checkpointer, signals, pending)


def _open_folder(folder: RunFolder, config: TrainConfig, begun: bool, held: contextlib.ExitStack) -> Checkpoint | None:
    """Lock a run's folder, make it if it is new, and return the checkpoint to go on from."""
    held.enter_context(folder.locked())
    if not folder.exists and folder.read_status().state is State.FINISHED:
        raise UserError(f"{folder.path} holds a finished run without its config.json: restore it, or move the folder")
    if begun and is_longer(config, folder):
        extend(folder, config)
    if folder.exists != begun or folder.read_status().state is State.FINISHED:
        raise InUse(f"another process has just worked in {folder.path}: run the command again")
    if not begun:
        folder.write_config(config, made_with())
    checkpoint = folder.checkpoints.newest(announce)
    if checkpoint is not None:
        require_as_many_processes(checkpoint, folder)
    return checkpoint


def _first_line(session: _Session) -> str:
    """Say what is trained, where, and what to expect."""
    config, weights = session.config, sum(parameter.numel() for parameter in session.agent.policy.parameters())
    processes = "" if parallel.size() == 1 else f"{plural(parallel.size(), 'process', 'processes')} of "
    inexact = "; a resume will not be exact, because its environments cannot be restored"
    return (
        f"{config.env}, {config.advantage}, {plural(config.actors, 'actor')}: {session.agent.device.type}, "
        f"{processes}{plural(torch.get_num_threads(), 'thread')}, network of {weights:,} weights; results in "
        f"{session.folder.path}{'' if session.checkpointer.exact else inexact}"
    )
