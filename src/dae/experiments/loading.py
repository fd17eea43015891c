"""Loading a run: its settings, its scores, its newest agent."""

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dae.errors import UserError
from dae.runs import Checkpoint, Episodes, RunFolder, RunSettings
from dae.terminal.boundary import announce

if TYPE_CHECKING:
    from dae.agent import PPO

AGENT = "agent.zip"  # the part of a checkpoint that holds the agent


@dataclass(frozen=True)
class Run:
    """A training run: its settings, its scores, and its newest agent (loaded when it is asked for, and safely)."""

    folder: RunFolder
    config: RunSettings

    @cached_property
    def episodes(self) -> Episodes:
        return self.folder.read_episodes()

    @cached_property
    def model(self) -> "PPO":
        checkpoint = self.folder.checkpoints.newest(announce)
        if checkpoint is None:
            raise UserError(f"{self.folder.path} has no checkpoint yet: let it train for a while")
        return load_agent(checkpoint, device="cpu")


def load_run(path: str | Path) -> Run:
    """Return the run in a folder. No code from its files runs."""
    folder = RunFolder(Path(path))
    return Run(folder, folder.read_config().settings)


def load_agent(checkpoint: Checkpoint, kind: "type[PPO] | None" = None, **options: Any) -> "PPO":
    """Return the agent of a checkpoint."""
    from dae.agent import PPO

    if AGENT not in checkpoint.parts:
        raise UserError(f"the checkpoint at {checkpoint.frames:,} frames has no {AGENT}: restore it from a backup")
    return (kind or PPO).load(io.BytesIO(checkpoint.parts[AGENT]), **options)
