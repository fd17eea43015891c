"""`dae train`: one run from its settings to its pictures, through every interruption."""

import contextlib
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO, NotFiniteError, parallel
from dae.envs.snapshots import can_be_restored
from dae.experiments.building import make_env, make_model, share_of
from dae.experiments.config import TrainConfig, require_same
from dae.experiments.progress import WorkProgress
from dae.experiments.provenance import made_with
from dae.experiments.signals import Stopped, StopSignals
from dae.experiments.state import Books, require_as_many_processes, restore, share_checkpoint, take_checkpoint
from dae.experiments.summary import summarize
from dae.runs import Checkpoint, RunFolder, RunProblem
from dae.runs.episodes import EpisodeLog

Result = TypeVar("Result")

_SECONDS_BETWEEN_STATUS = 5.0
_SECONDS_BETWEEN_LOOKS = 0.1
# A state is kept in memory for the case of a signal; taking it costs at most this share of the time.
_SHARE_FOR_STATES = 0.01


def train(config: TrainConfig) -> int:
    """Start or continue a run and return the exit code; started by torchrun, as one of several processes."""
    with parallel.joined(config.device):
        try:
            return _train(config)
        except (RunProblem, ValueError, gym.error.Error):
            if parallel.rank() == 0:
                raise
            return 2  # the first process says what is wrong


def _train(config: TrainConfig) -> int:
    folder = RunFolder(config.resume or config.folder)
    if parallel.any_of(bool(_by_the_first(lambda: _is_finished(folder, config)))):
        return 0
    share = share_of(config, parallel.size())
    env = make_env(share)
    if config.threads:  # after the games have loaded: Numba sets the threads of OpenMP, which PyTorch uses too
        torch.set_num_threads(config.threads)
    model = make_model(share, env)
    if parallel.rank() > 0:
        env.seed(parallel.own_seed(config.seed))
    with contextlib.ExitStack() as held:
        checkpoint = _by_the_first(lambda: _open(folder, config, held))
        return _Training(config, folder, env, model, share_checkpoint(checkpoint)).run()


def _is_finished(folder: RunFolder, config: TrainConfig) -> bool:
    if not folder.exists:
        return False
    require_same(folder.path, folder.read_config()["settings"], config.to_json())
    if folder.read_status().get("state") != "finished":
        return False
    print(f"{folder.path} is finished already; choose another --seed or --out for a new run")
    return True


def _open(folder: RunFolder, config: TrainConfig, held: contextlib.ExitStack) -> Checkpoint | None:
    """Lock a run's folder, make it if it is new, and return the checkpoint to go on from."""
    held.enter_context(folder.locked())
    if folder.exists:  # again, now that no one else can change it
        require_same(folder.path, folder.read_config()["settings"], config.to_json())
        if folder.read_status().get("state") == "finished":
            raise RunProblem(f"{folder.path} has just been finished by another process")
    else:
        folder.write_config({"settings": config.to_json(), "made_with": made_with()})
    checkpoint = folder.checkpoints.newest(_announce)
    if checkpoint is not None:
        require_as_many_processes(checkpoint, folder)
    return checkpoint


def _by_the_first(what: Callable[[], Result]) -> Result | None:
    """Do in the first process what concerns the folder, and return the result there; if it refuses, all leave."""
    result, problem = None, None
    if parallel.rank() == 0:
        try:
            result = what()
        except Exception as error:
            problem = error
    if parallel.any_of(problem is not None):
        raise problem or RunProblem("the first process refused")
    return result


class _Training(BaseCallback):
    """A run while it runs: the callback that keeps its books, writes its episodes and takes its checkpoints.

    Of processes that train together, each has one, and they go in step; only the first shows and writes anything.
    """

    def __init__(
        self, config: TrainConfig, folder: RunFolder, env: VecEnv, model: PPO, checkpoint: Checkpoint | None
    ) -> None:
        super().__init__()
        self.config, self.folder = config, folder
        self.alone, self.first = parallel.size() == 1, parallel.rank() == 0
        self.books = Books()
        self.exact = can_be_restored(config.env)
        self.latest: Checkpoint | None = None  # the state at the start of this iteration, or of one shortly before
        self.signals = StopSignals(at_once=self.alone)
        self._status_written = self._shown = 0.0
        self._saved = self._taken = time.monotonic()
        self._cost_of_a_state = 0.0
        self._ended: list[tuple[float, int, float, int]] = []  # episodes that are not in the log yet
        self.agent = self._begin_or_continue(env, model, checkpoint)
        self._earlier_seconds, self._began = self.books.seconds, time.monotonic()
        outputs: list[KVWriter] = []
        if self.first:
            self.log = EpisodeLog(folder.monitor, config.env, self.books.monitor_size)
            self.progress = WorkProgress(config.frames, self.agent.num_timesteps, "frames")
            outputs = [TensorBoardOutputFormat(str(folder.tensorboard))]
        self.agent.set_logger(Logger(str(folder.path), outputs))

    def _begin_or_continue(self, env: VecEnv, model: PPO, checkpoint: Checkpoint | None) -> PPO:
        if checkpoint is None:
            return model
        model, self.books = restore(self.config, self.folder, env, checkpoint, _announce if self.first else _keep_quiet)
        if not self.first:
            return model
        print(f"continuing at {checkpoint.frames:,} frames")
        threads = self.folder.read_config()["made_with"]["threads"]
        if threads != torch.get_num_threads():
            _announce(
                f"the run began with {threads} threads and goes on with {torch.get_num_threads()}: sums are added in "
                f"another order, so that it will not be bit for bit the same; --threads {threads} would make it so"
            )
        return model

    # The course of a run. --------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Train to the end, or until something stops it; either way the run can go on from there."""
        if self.first:
            print(self._first_line(), flush=True)
        with self.signals:  # also while the last checkpoint is written
            return self._run()

    def _run(self) -> int:
        try:
            with self.progress if self.first else contextlib.nullcontext():
                left = self.config.frames - self.agent.num_timesteps
                if left > 0:
                    self.agent.learn(left, callback=self, reset_num_timesteps=False, log_interval=1)
                if self.config.finishing:
                    self._finish()
            if self.first:
                summarize(self.config, self.folder, self.agent, self._seconds())
        except Stopped as stopped:
            self._save_latest()
            self._write_status("stopped")
            if self.first:
                print(
                    f"\nstopped by {stopped}; nothing is lost. Continue with: dae train --resume {self.folder.path}",
                    flush=True,
                )
            return stopped.exit_code
        except Exception as error:
            return self._fail(error)
        finally:
            if self.first:
                self.log.close()
        self._write_status("finished")
        return 0

    def _fail(self, error: Exception) -> int:
        """Keep the last good state, and say in one line what went wrong."""
        known = isinstance(error, NotFiniteError | RunProblem | OSError)
        told = " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())
        if not self.alone and not known:
            told += " (or another process of this training has ended: see what it said)"
        details = ""
        with contextlib.suppress(OSError):  # a full disk is what may have gone wrong
            self._save_latest()
            self._write_status("failed", error=told)
            if not known and self.first:
                report = self.folder.path / "error.txt"
                report.write_text(traceback.format_exc())
                details = f"; details are in {report}"
        print(f"dae: training stopped after {self.agent.num_timesteps:,} frames: {told}{details}", file=sys.stderr)
        return 1

    def _finish(self) -> None:
        """Let the trained policy play, without learning, until completed episodes hold as many frames as the run."""
        frames, env, obs = self.agent.num_timesteps, self.agent.env, self.agent._last_obs
        assert env is not None
        furthest = frames + self.config.frames
        self.agent.policy.set_training_mode(False)
        between_talks = 1 if self.alone else self.config.steps
        completed = int(parallel.broadcast([self.books.completed_frames])[0])
        while completed < self.config.frames and frames < furthest:
            self._check_signals()
            for _ in range(between_talks):
                with torch.no_grad():
                    actions = self.agent.policy.act(obs_as_tensor(obs, self.agent.device))[0]  # type: ignore[arg-type]
                obs, _, dones, infos = env.step(actions.cpu().numpy())  # type: ignore[assignment]
                frames += env.num_envs * parallel.size()
                self._record(np.flatnonzero(dones), infos, frames)
            self._log_episodes()
            completed = int(parallel.broadcast([self.books.completed_frames])[0])
            self._show(completed, "finishing")
        if self.first:
            self.log.flush()

    # What happens at every step and iteration. -----------------------------------------------------------------------

    def _on_rollout_start(self) -> None:
        """Between two iterations: keep the state, and write it if it is time."""
        self._check_signals()
        now = time.monotonic()
        worth_it = self._cost_of_a_state < _SHARE_FOR_STATES * (now - self._taken)
        due = now - self._saved >= self.config.checkpoint_seconds
        take, write = parallel.broadcast([self.latest is None or worth_it or due, due])
        if take:
            self._take_state()
        if write:
            self._save_latest()
        if now - self._status_written >= _SECONDS_BETWEEN_STATUS:
            self._write_status("running")

    def _on_rollout_end(self) -> None:
        self._log_episodes()

    def _on_step(self) -> bool:
        if self.alone:
            self.signals.check()
        self._record(np.flatnonzero(self.locals["dones"]), self.locals["infos"], self.agent.num_timesteps)
        self._show(self.agent.num_timesteps, "training")
        return True

    def _on_training_end(self) -> None:
        self._take_state()
        self._save_latest()

    def _record(self, ended: Any, infos: list[dict[str, Any]], frames: int) -> None:
        for i in ended:
            episode = infos[i]["episode"]
            self._ended.append((float(episode["r"]), int(episode["l"]), self._seconds(), frames))
        if self.alone and self._ended:
            self._log_episodes()

    def _log_episodes(self) -> None:
        """Write the episodes that ended, of all processes, in the order of their frames."""
        gathered = [np.frombuffer(own).reshape(-1, 4) for own in parallel.gather(np.array(self._ended).tobytes())]
        self._ended.clear()
        rows = np.concatenate(gathered) if gathered else np.empty((0, 4))
        for score, length, seconds, frames in rows[np.argsort(rows[:, 3], kind="stable")].tolist():
            self.log.append(score, int(length), seconds, int(frames))
            self.books.episodes += 1
            self.books.completed_frames += int(length)
        for others in gathered[1:]:  # the agent's own are there already
            assert self.agent.ep_info_buffer is not None
            self.agent.ep_info_buffer.extend({"r": row[0], "l": int(row[1]), "t": row[2]} for row in others.tolist())

    def _check_signals(self) -> None:
        """Stop if a signal came: to any of the processes, which all stop here."""
        if parallel.any_of(self.signals.received is not None):
            self.signals.received = self.signals.received or signal.SIGTERM
            self.signals.check()

    def _show(self, frames: int, phase: str) -> None:
        if not self.first or time.monotonic() - self._shown < _SECONDS_BETWEEN_LOOKS:
            return
        self._shown = time.monotonic()
        score = self._recent_score()
        news = f"last-100 score {'-' if score is None else f'{score:.2f}'}, {self.books.episodes:,} episodes"
        self.progress.update(frames, phase, news, rate_counts=phase == "training")

    def _take_state(self) -> None:
        began = time.monotonic()
        self.books.seconds = self._seconds()
        self.books.monitor_size = self.log.flush() if self.first else None
        self.latest = take_checkpoint(self.config, self.agent, self.books, exact=self.exact)
        self._taken = time.monotonic()
        self._cost_of_a_state = self._taken - began

    def _save_latest(self) -> None:
        if self.latest is not None and self.first:
            self.folder.checkpoints.save(self.latest)
        self._saved = time.monotonic()

    # What is told. ---------------------------------------------------------------------------------------------------

    def _seconds(self) -> float:
        return self._earlier_seconds + time.monotonic() - self._began

    def _recent_score(self) -> float | None:
        recent = self.agent.ep_info_buffer
        return float(np.mean([episode["r"] for episode in recent])) if recent else None

    def _write_status(self, state: str, **more: Any) -> None:
        self._status_written = time.monotonic()
        if not self.first:
            return
        self.folder.write_status(
            state=state,
            frames=self.agent.num_timesteps,
            total_frames=self.config.frames,
            episodes=self.books.episodes,
            score=self._recent_score(),
            frames_per_second=self.progress.rate,
            seconds=self._seconds(),
            **more,
        )

    def _first_line(self) -> str:
        weights = sum(parameter.numel() for parameter in self.agent.policy.parameters())
        exact = "" if self.exact else "; a resume will not be exact, because its environments cannot be restored"
        processes = "" if self.alone else f"{parallel.size()} processes of "
        return (
            f"{self.config.env}, {self.config.advantage}, {self.config.actors} actors: {self.agent.device.type}, "
            f"{processes}{torch.get_num_threads()} threads, network of {weights:,} weights; results in "
            f"{self.folder.path}{exact}"
        )


def _keep_quiet(line: str) -> None:
    """What the first process announces, the others need not."""


def _announce(line: str) -> None:
    print(f"dae: {line}", file=sys.stderr)
