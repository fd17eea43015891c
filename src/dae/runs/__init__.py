"""One folder for each training run: its settings, scores, checkpoints and status. No agent code, no plotting."""

from dae.runs.checkpoints import Checkpoint, Checkpoints
from dae.runs.episodes import Episodes, read_episodes
from dae.runs.folder import RunFolder, find_runs
from dae.runs.problem import RunProblem

__all__ = ["Checkpoint", "Checkpoints", "Episodes", "RunFolder", "RunProblem", "find_runs", "read_episodes"]
