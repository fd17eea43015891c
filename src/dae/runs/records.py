"""What a run records about itself: its status, and what it was made with."""

from dataclasses import dataclass, field
from enum import StrEnum


class State(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    STOPPED = "stopped"  # by a signal
    FAILED = "failed"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"  # killed: it says that it is running, and no process is
    UNKNOWN = "unknown"  # its status cannot be read


@dataclass(frozen=True)
class Status:
    """The status of a run when it was last written."""

    state: State = State.INTERRUPTED
    frames: int = 0
    total_frames: int = 0
    episodes: int | None = None
    score: float | None = None  # mean of the last 100 episodes
    evaluation: float | None = None  # mean score of the last evaluation, if there was one
    best: float | None = None  # of the best evaluation
    frames_per_second: float = 0.0
    seconds: float = 0.0  # of training
    error: str | None = None
    updated: float = 0.0


@dataclass(frozen=True)
class Provenance:
    """What a result was made with."""

    versions: dict[str, str] = field(default_factory=dict)
    git_commit: str | None = None  # None: the package does not run from its own repository
    uncommitted_changes: bool | None = None
    threads: int | None = None
    machine: str | None = None
    cpus: int | None = None
