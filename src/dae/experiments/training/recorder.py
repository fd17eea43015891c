"""What is written and shown of a run while it trains: episodes, status, checkpoints, progress."""

import time
import traceback
from types import TracebackType
from typing import Any, Self

import numpy as np
from stable_baselines3.common.logger import KVWriter

from dae.agent import PPO, parallel
from dae.experiments.config import TrainConfig
from dae.experiments.training.events import EventWriter, FrameLogger
from dae.experiments.training.state import Counters
from dae.runs import Checkpoint, RunFolder, State, Status
from dae.runs.episodes import EpisodeLog
from dae.terminal.progress import Pace, WorkProgress, compact
from dae.text import plural

_SECONDS_BETWEEN_LOOKS = 0.1
Ended = tuple[float, int, float, int]  # score, length, seconds, frames


class Recorder:
    """Collects the episodes of this process for the first one, which alone shows and writes anything."""

    def __init__(
        self, config: TrainConfig, folder: RunFolder, agent: PPO, counters: Counters, ends_at: int | None = None
    ) -> None:
        """`ends_at` are the frames after which the run is stopped, if that is before its end."""
        self._config, self._folder, self._agent, self._counters = config, folder, agent, counters
        self._total = ends_at or config.frames
        self._earlier_seconds, self._began = counters.seconds, time.monotonic()
        self._ended: list[Ended] = []  # episodes that are not written yet
        agent.set_logger(FrameLogger(folder.path, self._writers(), config.family.frames_per_step))

    def _writers(self) -> list[KVWriter]:
        return []

    @property
    def frames(self) -> int:
        """Frames that the agent has been trained with, of all processes."""
        return self._agent.num_timesteps * self._config.family.frames_per_step

    @property
    def seconds(self) -> float:
        """Seconds of training, without the pauses before a resume."""
        return self._earlier_seconds + time.monotonic() - self._began

    @property
    def completed_frames(self) -> int:
        """Frames in completed episodes, as far as this process knows."""
        return self._counters.completed_frames

    def record(self, ended: Any, infos: list[dict[str, Any]], frames: int) -> None:
        """Note the episodes that ended in a step; where a life was lost, the game goes on."""
        for episode in (infos[i]["episode"] for i in ended if "episode" in infos[i]):
            self._ended.append((float(episode["r"]), int(episode["l"]), self.seconds, frames))
        if parallel.size() == 1 and self._ended:
            self.write_episodes()

    def write_episodes(self) -> None:
        """Write the episodes that ended, of all processes, in the order of their frames."""
        gathered = parallel.gather(self._ended)
        self._ended = []
        self._write(sorted((episode for own in gathered for episode in own), key=lambda episode: episode[3]))
        for others in gathered[1:]:  # the agent's own are there already
            assert self._agent.ep_info_buffer is not None
            self._agent.ep_info_buffer.extend({"r": score, "l": length, "t": at} for score, length, at, _ in others)

    def _write(self, episodes: list[Ended]) -> None:
        """Write episodes of all processes."""

    def flush(self) -> int | None:
        """Flush all episodes to the disk and return the size of their file, if this process writes it."""
        return None

    def mark_iteration(self) -> None:
        """Note that an iteration begins, or that the last one has ended."""

    def show_collecting(self, share: float) -> None:
        """Show how far the run is, and which share of the rollout there is."""

    def show_learning(self, share: float | None = None) -> None:
        """Show how far the run is, and which share of the update is done, if that is known."""

    def show_evaluating(self, share: float) -> None:
        """Show which share of an evaluation is done."""

    def show_finishing(self, completed: int) -> None:
        """Show how many frames completed episodes hold."""

    def say(self, line: str) -> None:
        """Print a line."""

    def write_status(self, state: State, error: str | None = None) -> None:
        """Write the status of the run."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint."""

    def keep_traceback(self) -> str:
        """Write the traceback of the current error to a file, and return a text that names it."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close what is open."""


class FolderRecorder(Recorder):
    """Writes to the run's folder, and shows progress on the terminal."""

    def __init__(
        self, config: TrainConfig, folder: RunFolder, agent: PPO, counters: Counters, ends_at: int | None = None
    ) -> None:
        super().__init__(config, folder, agent, counters, ends_at)
        self._log = EpisodeLog(folder.monitor, config.env, counters.monitor_size)
        self._progress = WorkProgress(self._total, self.frames, "frames")
        self._pace, self._iterating = Pace(self.frames), False
        self._finishing: Pace | None = None
        self._shown, self._phase = 0.0, ""

    def _writers(self) -> list[KVWriter]:
        return [] if self._config.track == "none" else [EventWriter(self._folder.tensorboard)]

    def _write(self, episodes: list[Ended]) -> None:
        for score, length, seconds, frames in episodes:
            self._log.add(score, length, seconds, frames)
            self._counters.episodes += 1
            self._counters.completed_frames += length * self._config.family.frames_per_step

    def flush(self) -> int | None:
        return self._log.flush()

    def mark_iteration(self) -> None:
        if self._iterating:
            self._pace.mark(self.frames)
        else:  # what came before, such as the rest of an update, was no whole iteration
            self._pace, self._iterating = Pace(self.frames), True

    def show_collecting(self, share: float) -> None:
        self._show(self.frames, "collecting", self._pace, share)

    def show_learning(self, share: float | None = None) -> None:
        self._show(self.frames, "learning", self._pace, share)

    def show_evaluating(self, share: float) -> None:
        self._show(self.frames, "evaluating", self._pace, share)

    def show_finishing(self, completed: int) -> None:
        if self._finishing is None:
            self._finishing = Pace(completed, unknown="no episode has ended yet")
        self._finishing.mark(completed)
        self._show(completed, "finishing", self._finishing)

    def _show(self, frames: int, phase: str, pace: Pace, share: float | None = None) -> None:
        if phase == self._phase and time.monotonic() - self._shown < _SECONDS_BETWEEN_LOOKS:
            return
        self._shown, self._phase = time.monotonic(), phase
        recent, episodes = self._recent_score(), self._counters.episodes
        score = "-" if recent is None else f"{recent:.2f}"
        news = [
            (f"last-100 score {score}", f"score {score}"),
            (plural(episodes, "episode"), f"{compact(episodes)} episodes"),
        ]
        self._progress.update(min(frames, self._total), phase, news, pace, share)

    def say(self, line: str) -> None:
        print(line, flush=True)

    def write_status(self, state: State, error: str | None = None) -> None:
        self._folder.lock.keep()
        self._folder.write_status(
            Status(
                state=state,
                frames=self.frames,
                total_frames=self._config.frames,
                episodes=self._counters.episodes,
                score=self._recent_score(),
                evaluation=self._counters.evaluation,
                best=self._counters.best,
                frames_per_second=self._pace.rate,
                seconds=self.seconds,
                error=error,
            )
        )

    def save(self, checkpoint: Checkpoint) -> None:
        self._folder.lock.keep()
        self._folder.checkpoints.save(checkpoint)

    def keep_traceback(self) -> str:
        self._folder.error.write_text(traceback.format_exc(), encoding="utf-8", errors="replace")
        return f"; details are in {self._folder.error}"

    def _recent_score(self) -> float | None:
        recent = self._agent.ep_info_buffer
        return float(np.mean([episode["r"] for episode in recent])) if recent else None

    def __enter__(self) -> Self:
        self._agent.after_minibatch = self.show_learning
        self._progress.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.__exit__(kind, error, at)
        self._agent.after_minibatch = None
        self._log.close()
        self._agent.logger.close()
