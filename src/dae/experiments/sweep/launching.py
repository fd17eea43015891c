"""Who trains many runs, and how many at a time: the options that sweeps and searches share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from dae.errors import UserError
from dae.rules import COUNT, NOT_NEGATIVE, ruled
from dae.terminal.options import optional_words


@dataclass(frozen=True)
class Launching:
    """What trains the runs."""

    launcher: Literal["local", "ray"] = "local"
    """What trains the runs: processes on this machine, or a Ray cluster (all nodes must share the run folders)."""
    jobs: int = ruled(0, NOT_NEGATIVE)
    """Runs at the same time; 0 for as many as the cores allow."""
    cpus_per_run: int = ruled(1, COUNT)
    """Cores, and threads, of each run."""
    gpus_per_run: float = ruled(0.0, NOT_NEGATIVE)
    """GPUs of each run, with Ray; a fraction lets runs share one."""
    ray_address: Annotated[str | None, optional_words("ADDRESS")] = None
    """Address of a Ray cluster, or auto for one that runs on this machine; without it a local one is started."""
    retries: int = ruled(2, NOT_NEGATIVE)
    """How often a run that died (was killed, ran out of memory) is started again without making progress."""

    def require_launchable(self) -> None:
        """Refuse options that do not go together."""
        if self.gpus_per_run and self.launcher != "ray":
            raise UserError(f"gpus_per_run is {self.gpus_per_run:g}: only --launcher ray can assign GPUs")
