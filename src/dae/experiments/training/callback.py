"""What happens at every step and iteration of a run: Stable-Baselines3's callback."""

import signal

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from dae.agent import PPO, parallel
from dae.experiments.training.checkpointer import Checkpointer
from dae.experiments.training.companion import Companion
from dae.experiments.training.evaluating import Evaluator
from dae.experiments.training.recorder import Recorder
from dae.terminal.signals import StopSignals


class TrainingCallback(BaseCallback):
    """Hands episodes to the recorder and iterations to evaluator, companion and checkpointer, and obeys signals."""

    model: PPO

    def __init__(
        self,
        recorder: Recorder,
        evaluator: Evaluator,
        companion: Companion,
        checkpointer: Checkpointer,
        signals: StopSignals,
    ) -> None:
        super().__init__()
        self._recorder, self._evaluator, self._companion = recorder, evaluator, companion
        self._checkpointer, self._signals = checkpointer, signals

    def _on_rollout_start(self) -> None:
        check_together(self._signals)
        self._recorder.mark_iteration()
        self._evaluator.between_iterations()
        self._companion.before_rollout(self.model)
        self._checkpointer.between_iterations()

    def _on_step(self) -> bool:
        if parallel.size() == 1:
            self._signals.check()
        self._recorder.record(np.flatnonzero(self.locals["dones"]), self.locals["infos"], self._recorder.frames)
        steps = self.locals["n_steps"] + 1
        self._recorder.show_collecting(steps / self.locals["n_rollout_steps"])
        self._companion.after_step(self.model, steps)
        return True

    def _on_rollout_end(self) -> None:
        self._recorder.write_episodes()
        self._companion.after_rollout(self.model)
        self._checkpointer.before_update()
        self._recorder.show_learning()  # Stable-Baselines3's own code does not say how far it is

    def _on_training_end(self) -> None:
        self._recorder.mark_iteration()
        self._evaluator.between_iterations()
        self._checkpointer.take()
        self._checkpointer.save()


def check_together(signals: StopSignals) -> None:
    """Stop if a signal came: to any of the processes, which all stop here."""
    if parallel.any_of(signals.received is not None):
        signals.received = signals.received or signal.SIGTERM
        signals.check()
