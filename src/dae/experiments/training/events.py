"""The numbers that an agent logs: against which frame, and TensorBoard's events of them, written by the process itself.

TensorBoard's own writer leaves this to a thread, whose errors (a full disk, a folder that was deleted) nobody catches.
"""

import os
import socket
import time
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, Logger
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def numbers_of(key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]]) -> dict[str, float]:
    """Return what is to be drawn of the values that an agent logs."""
    return {
        name: float(value)
        for name, value in key_values.items()
        if isinstance(value, Real | np.generic) and "tensorboard" not in (key_excluded.get(name) or ())
    }


class FrameLogger(Logger):
    """Writes against the frames of a run, as all of its files and displays do; an agent counts its steps."""

    def __init__(self, folder: Path, writers: list[KVWriter], frames_per_step: int) -> None:
        super().__init__(str(folder), writers)
        self._frames_per_step = frames_per_step

    def dump(self, step: int = 0) -> None:
        super().dump(step * self._frames_per_step)


class EventWriter(KVWriter):
    """Writes the numbers that an agent logs to a new file in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._file = (folder / name).open("wb")
        self._records = RecordWriter(self._file)
        self._add(file_version="brain.Event:2")

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        numbers = numbers_of(key_values, key_excluded).items()
        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers]
        self._add(step=step, summary=Summary(value=values))

    def _add(self, **content: Any) -> None:
        self._records.write(Event(wall_time=time.time(), **content).SerializeToString())
        self._file.flush()

    def close(self) -> None:
        self._file.close()
