"""When the state of a run is taken and written."""

import math
import time

from dae.agent import PPO, parallel
from dae.agent.rollout import Rollout
from dae.experiments.config import TrainConfig
from dae.experiments.training.recorder import Recorder
from dae.experiments.training.state import Counters, take_checkpoint
from dae.runs import Checkpoint, State

_SECONDS_BETWEEN_STATUS = 5.0
# A state is kept in memory in case of a signal; taking it costs at most this share of the time.
_SHARE_FOR_STATES = 0.01
# A larger rollout is not worth a checkpoint of its own.
_LARGEST_ROLLOUT = 2**30


class Checkpointer:
    """Keeps the state at the start of this iteration, or of one shortly before, and writes it from time to time.

    Each of several processes that train together has one; they decide together, and the first one's recorder writes.
    """

    def __init__(self, config: TrainConfig, agent: PPO, counters: Counters, recorder: Recorder, *, exact: bool) -> None:
        self._config, self._agent, self._counters, self._recorder = config, agent, counters, recorder
        self.exact = exact  # whether environments can be restored
        self._latest: Checkpoint | None = None
        self._saved = self._taken = time.monotonic()
        self._cost_of_a_state = 0.0
        self._status_written = 0.0
        self._iteration_began: float | None = None
        self._iteration_seconds = math.inf  # of the last one; the first may be long

    def between_iterations(self) -> None:
        """Keep the state, and write it if it is time."""
        now = time.monotonic()
        if self._iteration_began is not None:
            self._iteration_seconds = now - self._iteration_began
        self._iteration_began = now
        worth_it = self._cost_of_a_state < _SHARE_FOR_STATES * (now - self._taken)
        due = now - self._saved >= self._config.checkpoint_seconds
        take, write = parallel.broadcast((self._latest is None or worth_it or due, due))
        if take:
            self.take()
        if write:
            self.save()
        if now - self._status_written >= _SECONDS_BETWEEN_STATUS:
            self._status_written = now
            self._recorder.write_status(State.RUNNING)

    def before_update(self) -> None:
        """Write the state in the middle of an iteration that takes longer than the time between two checkpoints."""
        too_long = self._iteration_seconds > self._config.checkpoint_seconds
        rollout = self._agent.rollout_buffer
        if too_long and parallel.size() == 1 and isinstance(rollout, Rollout) and rollout.nbytes <= _LARGEST_ROLLOUT:
            self.take(pending=True)
            self.save()
            self._latest = None  # a rollout is large, and a signal during the update would only write it again

    def take(self, *, pending: bool = False) -> None:
        """Take the state as it is now; `pending` if an update is to come."""
        began = time.monotonic()
        self._counters.seconds = self._recorder.seconds
        self._counters.monitor_size = self._recorder.flush()
        self._latest = take_checkpoint(self._config, self._agent, self._counters, exact=self.exact, pending=pending)
        self._taken = time.monotonic()
        self._cost_of_a_state = self._taken - began

    def save(self) -> None:
        """Write the state that was taken last."""
        if self._latest is not None:
            self._recorder.save(self._latest)
        self._saved = time.monotonic()
