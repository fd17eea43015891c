"""One folder for each training run: its settings, scores, checkpoints and status. No agent code, no plotting."""

from dae.runs.checkpoints import Checkpoint, Checkpoints
from dae.runs.episodes import Episodes, read_episodes
from dae.runs.folder import RunConfig, RunFolder, find_runs
from dae.runs.records import Provenance, State, Status
from dae.runs.settings import RunSettings

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Episodes",
    "Provenance",
    "RunConfig",
    "RunFolder",
    "RunSettings",
    "State",
    "Status",
    "find_runs",
    "read_episodes",
]
