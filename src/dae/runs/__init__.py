"""One folder for each training run: its settings, scores, checkpoints and status. No agent code, no plotting."""

from dae.runs.checkpoints import Checkpoint as Checkpoint, Checkpoints as Checkpoints
from dae.runs.digest import BINS as BINS, Axis as Axis, Digest as Digest
from dae.runs.episodes import Episodes as Episodes, read_episodes as read_episodes
from dae.runs.folder import (
    RunConfig as RunConfig,
    RunFolder as RunFolder,
    find_runs as find_runs,
    make_folder as make_folder,
)
from dae.runs.lock import FolderLost as FolderLost
from dae.runs.records import Provenance as Provenance, State as State, Status as Status
from dae.runs.settings import RunSettings as RunSettings
