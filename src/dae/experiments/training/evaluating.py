"""Evaluation during training: from time to time the agent plays in environments of its own; the best one is kept."""

import io
from types import TracebackType
from typing import Self

import numpy as np

from dae.agent import PPO, parallel
from dae.agent.saving import LAST_SEEN
from dae.experiments.config import TrainConfig
from dae.experiments.loading import AGENT, NORMALIZATION
from dae.experiments.normalization import make_playing_env, take_statistics
from dae.experiments.scoring import MOST_ENVS, TooLong, measure, own_randomness
from dae.experiments.training.recorder import Recorder
from dae.experiments.training.state import Counters
from dae.runs import Checkpoint, RunFolder
from dae.runs.evaluations import EvaluationLog

_MOST_STEPS = 100_000  # of an environment: an agent that never ends its episodes must not hold up its training


class Evaluator:
    """Measures the agent every `eval_every` frames.

    What it finds depends on the weights, the seed and the frames alone, and it leaves no trace in the training: with
    and without evaluations the agent learns the same, bit for bit.
    """

    def __init__(
        self, config: TrainConfig, folder: RunFolder, agent: PPO, counters: Counters, recorder: Recorder
    ) -> None:
        self._config, self._folder, self._agent = config, folder, agent
        self._counters, self._recorder = counters, recorder
        self._log: EvaluationLog | None = None
        if config.eval_every and parallel.rank() == 0:
            self._log = EvaluationLog(folder.evaluations, config.env, counters.evaluations_size)
            folder.best.forget_after(counters.evaluated_at)  # they come again
            if folder.best.newest_frames() == 0:
                counters.best = None

    def between_iterations(self) -> None:
        """Evaluate the agent, if it is time."""
        frames, every = self._recorder.frames, self._config.eval_every
        if self._log is not None and frames // every > self._counters.evaluated_at // every:
            self._evaluate(self._log, frames)

    def _evaluate(self, log: EvaluationLog, frames: int) -> None:
        config, counters = self._config, self._counters
        counters.evaluated_at, counters.evaluations_size = frames, log.flush()
        statistics = take_statistics(self._agent.env)
        seed = int(np.random.SeedSequence((config.seed, frames)).generate_state(1)[0])
        with own_randomness(seed, self._agent.device):
            env = make_playing_env(config, min(config.eval_episodes, MOST_ENVS), seed, statistics)
            try:
                scores, lengths = measure(
                    self._agent,
                    env,
                    config.eval_episodes,
                    greedy=config.eval_greedy,
                    most_steps=_MOST_STEPS,
                    watch=lambda ended, steps: self._recorder.show_evaluating(ended / config.eval_episodes),
                )
            except TooLong as error:
                self._recorder.say(f"no evaluation at frame {frames:,}: {error}")
                return
            finally:
                env.close()
        log.add(frames, scores, lengths)
        counters.evaluations_size = log.flush()
        counters.evaluation = float(scores.mean())
        found = {"eval/mean_reward": counters.evaluation, "eval/mean_ep_length": float(lengths.mean())}
        for writer in self._agent.logger.output_formats:  # now: what is recorded is written after the next rollout
            writer.write(found, dict.fromkeys(found, ()), frames)
        if counters.best is None or counters.evaluation > counters.best:
            counters.best = counters.evaluation
            self._keep_best(frames, statistics)

    def _keep_best(self, frames: int, statistics: bytes | None) -> None:
        saved = io.BytesIO()
        self._agent.save(saved, exclude=LAST_SEEN)
        parts = {AGENT: saved.getvalue()} | ({} if statistics is None else {NORMALIZATION: statistics})
        self._folder.lock.keep()
        self._folder.best.save(Checkpoint(frames, parts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._log is not None:
            self._log.close()
