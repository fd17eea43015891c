"""Loading a run: its settings, its scores, its newest agent."""

import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dae.envs import require_trust
from dae.errors import UserError
from dae.runs import Checkpoint, Episodes, RunFolder, RunSettings, State, find_runs
from dae.runs.evaluations import Evaluations
from dae.runs.listing import ListingConfig, list_runs
from dae.terminal.boundary import announce

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from dae.agent import PPO

AGENT = "agent.zip"  # the part of a checkpoint that holds the agent
NORMALIZATION = "normalization.json"  # that which holds the statistics of normalised environments


@dataclass(frozen=True)
class Run:
    """A training run: its settings, its scores, and its agent (loaded when it is asked for, and safely)."""

    folder: RunFolder
    config: RunSettings
    best: bool = False  # the agent is the one with the best evaluation
    trust: bool = False  # the module that the environment's id may name can be imported

    @cached_property
    def episodes(self) -> Episodes:
        return self.folder.read_episodes()

    @cached_property
    def evaluations(self) -> Evaluations:
        return self.folder.read_evaluations()

    @cached_property
    def model(self) -> "PPO":
        return load_agent(self._checkpoint, device="cpu")

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        self.folder.require_whole()
        checkpoint = (self.folder.best if self.best else self.folder.checkpoints).newest(announce)
        if checkpoint is None and self.best:
            raise UserError(f"{self.folder.path} has no best agent: nothing was evaluated; train with --eval-every")
        if checkpoint is None:
            raise UserError(f"{self.folder.path} has no checkpoint yet: let it train for a while")
        return checkpoint

    def announce_if_training(self) -> None:
        """Say that the agent is not the last one of its run, if the run goes on."""
        if self.folder.read_status().state is State.RUNNING:
            announce(
                f"{self.folder.path} is still training: this is its agent of the newest checkpoint, at "
                f"{self._checkpoint.frames:,} frames"
            )

    def make_env(self, n_envs: int = 1, seed: int = 0, **options: Any) -> "VecEnv":
        """Make environments as the agent knows them: with the run's arguments, and observations normalised as then.

        An environment whose id names a module is made by importing that module, which `load_run(trust=True)` allows.
        """
        from dae.experiments.normalization import make_playing_env

        require_trust(self.config.env, self.folder.path, "trust=True", trust=self.trust)
        return make_playing_env(self.config, n_envs, seed, self.statistics, **options)

    @property
    def statistics(self) -> bytes | None:
        """The statistics that observations and rewards were normalised with, if they were."""
        return self._checkpoint.parts.get(NORMALIZATION)


def load_run(path: str | Path, *, best: bool = False, trust: bool = False) -> Run:
    """Return the run in a folder: with its newest agent, or the `best` one of its evaluations.

    No code from its files runs. With `trust`, `make_env` may import the module that the run's environment names.
    """
    folder = RunFolder(Path(path))
    return Run(folder, folder.read_config().settings, best, trust)


def find_run(path: Path, command: str) -> Path:
    """Return the folder of the run that a command is for: the one named, or the only one below it."""
    if RunFolder(path).exists:
        return path
    found = [folder.path for folder in find_runs([path])]
    if len(found) > 1:
        list_runs(ListingConfig(path))
        raise UserError(f"{path} holds {len(found)} runs: name one of them, such as dae {command} {found[0]}")
    if found and found[0] != path:
        print(f"the only run in {path}: {found[0]}")
        return found[0]
    return path


def hash_weights(model: "PPO", into: Any) -> None:
    """Add the weights of an agent to a hash, which then tells agents apart."""
    for name, weights in sorted(model.policy.state_dict().items()):
        into.update(name.encode() + weights.cpu().numpy().tobytes())


def load_agent(checkpoint: Checkpoint, kind: "type[PPO] | None" = None, **options: Any) -> "PPO":
    """Return the agent of a checkpoint."""
    from dae.agent import PPO

    if AGENT not in checkpoint.parts:
        raise UserError(f"the checkpoint at {checkpoint.frames:,} frames has no {AGENT}: restore it from a backup")
    return (kind or PPO).load(io.BytesIO(checkpoint.parts[AGENT]), **options)
