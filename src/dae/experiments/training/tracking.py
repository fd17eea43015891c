"""Weights & Biases: the numbers of a run, sent while it trains. Whatever fails here, the training goes on.

Stable-Baselines3's logger hands the same numbers to it as to the events of TensorBoard: `wandb` cannot follow those
files, because it looks for TensorBoard's own writer.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter

from dae.errors import one_line
from dae.experiments.config import TrainConfig
from dae.experiments.training.events import numbers_of
from dae.files import read_file, write_atomically
from dae.runs import RunFolder, State
from dae.terminal.boundary import announce

_EXIT_CODES = {State.FINISHED: 0, State.STOPPED: 255}  # 255 is what wandb itself reports for Ctrl-C
_SECONDS_TO_BEGIN = 30
_SECONDS_TO_END = 10  # a run that is stopped must end soon; what is not sent by then stays on the disk
_LONGEST_ID = 64


@contextlib.contextmanager
def tracked(config: TrainConfig, folder: RunFolder) -> Iterator[list[KVWriter]]:
    """Give writers for the logger of a run; at the end its state is told as status.json has it."""
    run = _begin(config, folder) if config.track == "wandb" else None
    try:
        yield [] if run is None else [WandbWriter(run)]
    finally:
        if run is not None:
            _end(run, folder.read_status().state)


class WandbWriter(KVWriter):
    """Sends the numbers that an agent logs to a run of Weights & Biases."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        # A run that was killed has sent steps that come after its last checkpoint; wandb takes no step twice.
        if self._run is None or step < self._run.step:
            return
        try:
            self._run.log(numbers_of(key_values, key_excluded), step=step)
        except Exception as error:  # of a service of someone else's
            self._run = None
            announce(f"Weights & Biases: {one_line(error)}; from frame {step:,} on nothing is sent to it")

    def close(self) -> None:
        """Do nothing: the run ends when its state is known."""


def _begin(config: TrainConfig, folder: RunFolder) -> Any:
    """Return a run of Weights & Biases, offline if it cannot be reached; None if that does not work either."""
    try:
        with _cache_in(folder.wandb / "cache"):
            import wandb

            # For all of it, also what it says in its own threads: the terminal belongs to the progress display.
            settings = wandb.setup(wandb.Settings(silent=True)).settings
            try:
                if settings.mode == "online" and not wandb.login(prompt=False):
                    raise ConnectionError("you are not logged in (wandb login)")
                run = _open(config, folder)
                if run.url:
                    print(f"tracked at {run.url}", flush=True)
                return run
            except Exception as error:
                run = _open(config, folder, mode="offline")
                announce(
                    f"Weights & Biases: {one_line(error)}; the run is tracked offline, to be sent later with: "
                    f"wandb sync {folder.wandb}/offline-run-*"
                )
                return run
    except Exception as error:
        announce(f"Weights & Biases: {type(error).__name__}: {one_line(error)}; the run goes on without it")
        return None


def _open(config: TrainConfig, folder: RunFolder, **options: Any) -> Any:
    import wandb

    return wandb.init(
        dir=str(folder.path),  # in which it makes a folder "wandb"
        id=_own_id(folder.wandb / "id"),
        resume="allow",
        project=os.environ.get("WANDB_PROJECT", "dae"),
        name=config.name,
        group=str(Path(config.name).parent),  # runs that differ only in the seed
        config=config.to_json(),
        allow_val_change=True,
        reinit="create_new",  # a program that calls `train` may have a run of its own
        settings=wandb.Settings(
            silent=True,
            console="off",
            symlink=False,
            init_timeout=_SECONDS_TO_BEGIN,
            finish_timeout=_SECONDS_TO_END,
        ),
        **options,
    )


def _own_id(path: Path) -> str:
    """Return the run's id, which moves with its folder; a new one if there is none."""
    with contextlib.suppress(OSError):
        known = read_file(path, _LONGEST_ID).decode(errors="replace").strip()
        if re.fullmatch(r"[0-9a-z]+", known):
            return known
    new = secrets.token_hex(8)  # no generator that the training uses
    write_atomically(path, new.encode() + b"\n")
    return new


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Let the service that wandb starts write its logs there, and not in the user's home."""
    name = "WANDB_CACHE_DIR"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(folder.absolute())
    try:
        yield
    finally:
        del os.environ[name]


def _end(run: Any, state: State) -> None:
    try:
        run.summary["state"] = str(state)
        run.finish(exit_code=_EXIT_CODES.get(state, 1))
    except Exception as error:
        announce(f"Weights & Biases: {one_line(error)}; its record of the run may not be complete")
