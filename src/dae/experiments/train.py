"""`dae train`: one run from its settings to its pictures, through every interruption."""

import contextlib
import sys
import time
import traceback
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO, NotFiniteError
from dae.envs.snapshots import can_be_restored
from dae.experiments.building import make_env, make_model
from dae.experiments.config import TrainConfig, require_same
from dae.experiments.progress import WorkProgress
from dae.experiments.provenance import made_with
from dae.experiments.signals import Stopped, StopSignals
from dae.experiments.state import Books, restore, take_checkpoint
from dae.experiments.summary import summarize
from dae.runs import Checkpoint, RunFolder, RunProblem
from dae.runs.episodes import EpisodeLog

_SECONDS_BETWEEN_STATUS = 5.0
_SECONDS_BETWEEN_LOOKS = 0.1
# A state is kept in memory for the case of a signal; taking it costs at most this share of the time.
_SHARE_FOR_STATES = 0.01


def train(config: TrainConfig) -> int:
    """Start or continue a run and return the exit code."""
    if config.threads:
        torch.set_num_threads(config.threads)
    folder = RunFolder(config.resume or config.folder)
    if folder.exists:
        require_same(folder.path, folder.read_config()["settings"], config.to_json())
        if folder.read_status().get("state") == "finished":
            print(f"{folder.path} is finished already; choose another --seed or --out for a new run")
            return 0
    env = make_env(config)
    model = make_model(config, env)
    with folder.locked():
        return _Training(config, folder, env, model).run()


class _Training(BaseCallback):
    """A run while it runs: the callback that keeps its books, writes its episodes and takes its checkpoints."""

    def __init__(self, config: TrainConfig, folder: RunFolder, env: VecEnv, model: PPO) -> None:
        super().__init__()
        self.config, self.folder = config, folder
        self.books = Books()
        self.exact = can_be_restored(config.env)
        self.latest: Checkpoint | None = None  # the state at the start of this iteration, or of one shortly before
        self.signals = StopSignals()
        self._status_written = self._shown = 0.0
        self._saved = self._taken = time.monotonic()
        self._cost_of_a_state = 0.0
        self.agent = self._begin_or_continue(env, model)
        self.log = EpisodeLog(folder.monitor, config.env, self.books.monitor_size)
        self._earlier_seconds, self._began = self.books.seconds, time.monotonic()
        self.agent.set_logger(Logger(str(folder.path), [TensorBoardOutputFormat(str(folder.tensorboard))]))
        self.progress = WorkProgress(config.frames, self.agent.num_timesteps, "frames")

    def _begin_or_continue(self, env: VecEnv, model: PPO) -> PPO:
        if not self.folder.exists:
            self.folder.write_config({"settings": self.config.to_json(), "made_with": made_with()})
        checkpoint = self.folder.checkpoints.newest(_announce)
        if checkpoint is None:
            return model
        model, self.books = restore(self.config, self.folder, env, checkpoint, _announce)
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
        print(self._first_line(), flush=True)
        with self.signals:  # also while the last checkpoint is written
            return self._run()

    def _run(self) -> int:
        try:
            with self.progress:
                left = self.config.frames - self.agent.num_timesteps
                if left > 0:
                    self.agent.learn(left, callback=self, reset_num_timesteps=False, log_interval=1)
                if self.config.finishing:
                    self._finish()
            summarize(self.config, self.folder, self.agent, self._seconds())
        except Stopped as stopped:
            self._save_latest()
            self._write_status("stopped")
            print(
                f"\nstopped by {stopped}; nothing is lost. Continue with: dae train --resume {self.folder.path}",
                flush=True,
            )
            return stopped.exit_code
        except Exception as error:
            return self._fail(error)
        finally:
            self.log.close()
        self._write_status("finished")
        return 0

    def _fail(self, error: Exception) -> int:
        """Keep the last good state, and say in one line what went wrong."""
        known = isinstance(error, NotFiniteError | RunProblem | OSError)
        told = " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())
        details = ""
        with contextlib.suppress(OSError):  # a full disk is what may have gone wrong
            self._save_latest()
            self._write_status("failed", error=told)
            if not known:
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
        while self.books.completed_frames < self.config.frames and frames < furthest:
            self.signals.check()
            with torch.no_grad():
                actions = self.agent.policy.act(obs_as_tensor(obs, self.agent.device))[0]  # type: ignore[arg-type]
            obs, _, dones, infos = env.step(actions.cpu().numpy())  # type: ignore[assignment]
            frames += env.num_envs
            self._record(np.flatnonzero(dones), infos, frames)
            self._show(self.books.completed_frames, "finishing")
        self.log.flush()

    # What happens at every step and iteration. -----------------------------------------------------------------------

    def _on_rollout_start(self) -> None:
        """Between two iterations: keep the state, and write it if it is time."""
        now = time.monotonic()
        worth_it = self._cost_of_a_state < _SHARE_FOR_STATES * (now - self._taken)
        due = now - self._saved >= self.config.checkpoint_seconds
        if self.latest is None or worth_it or due:
            self._take_state()
        if due:
            self._save_latest()
        if now - self._status_written >= _SECONDS_BETWEEN_STATUS:
            self._write_status("running")

    def _on_step(self) -> bool:
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
            self.log.append(float(episode["r"]), int(episode["l"]), self._seconds(), frames)
            self.books.episodes += 1
            self.books.completed_frames += int(episode["l"])

    def _show(self, frames: int, phase: str) -> None:
        if time.monotonic() - self._shown < _SECONDS_BETWEEN_LOOKS:
            return
        self._shown = time.monotonic()
        score = self._recent_score()
        news = f"last-100 score {'-' if score is None else f'{score:.2f}'}, {self.books.episodes:,} episodes"
        self.progress.update(frames, phase, news, rate_counts=phase == "training")

    def _take_state(self) -> None:
        began = time.monotonic()
        self.books.seconds = self._seconds()
        self.books.monitor_size = self.log.flush()
        self.latest = take_checkpoint(self.config, self.agent, self.books, exact=self.exact)
        self._taken = time.monotonic()
        self._cost_of_a_state = self._taken - began

    def _save_latest(self) -> None:
        if self.latest is not None:
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
        return (
            f"{self.config.env}, {self.config.advantage}, {self.config.actors} actors: {self.agent.device.type}, "
            f"{torch.get_num_threads()} threads, network of {weights:,} weights; results in {self.folder.path}{exact}"
        )


def _announce(line: str) -> None:
    print(f"dae: {line}", file=sys.stderr)
