"""Who trains the runs of a sweep: processes of this machine, or a Ray cluster."""

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dae.errors import UserError, one_line
from dae.experiments.sweep.launching import Launching
from dae.experiments.sweep.planned import PlannedRun
from dae.terminal.boundary import announce, exit_code_of
from dae.terminal.extensions import VARIABLE, import_extensions
from dae.terminal.signals import Stopped


class Launcher(ABC):
    """Starts runs and says how they ended. A run is `dae train` with its own log, wherever it runs."""

    @abstractmethod
    def slots(self) -> int:
        """Return how many runs there is room for."""

    @abstractmethod
    def start(self, run: PlannedRun) -> Any:
        """Start a run and return a handle for it."""

    @abstractmethod
    def exit_code(self, handle: Any) -> int | None:
        """Return how a run ended, None while it runs; negative if it was killed, as in `subprocess`."""

    @abstractmethod
    def stop(self, handle: Any) -> None:
        """Ask a run to write a checkpoint and end; to ask it more than once changes nothing."""

    def close(self) -> None:  # noqa: B027 (not all have something to close)
        """Release what the launcher holds."""


class LocalProcesses(Launcher):
    """One process per run. It has its own session, so that a signal to the sweep does not reach it directly."""

    def __init__(self, config: Launching) -> None:
        self._slots = config.jobs or max(1, len(os.sched_getaffinity(0)) // config.cpus_per_run)
        self._environment = os.environ | {"OMP_NUM_THREADS": str(config.cpus_per_run)}

    def slots(self) -> int:
        return self._slots

    def start(self, run: PlannedRun) -> "subprocess.Popen[bytes]":
        with run.folder.log.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "dae", "train", *run.words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def exit_code(self, handle: "subprocess.Popen[bytes]") -> int | None:
        return handle.poll()

    def stop(self, handle: "subprocess.Popen[bytes]") -> None:
        handle.terminate()


class RayCluster(Launcher):
    """One Ray task per run, each in a worker process that ends with it."""

    def __init__(self, config: Launching) -> None:
        if find_spec("ray") is None:
            raise UserError("launcher is 'ray', which is not installed: pip install 'dae-rl[ray]', or use local")
        self._config = config
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._ray: Any = import_module("ray")
        if not self._ray.is_initialized():
            self._connect()
        self._logs: dict[Any, Path] = {}
        resources = {"num_cpus": config.cpus_per_run, "num_gpus": config.gpus_per_run}
        self._task = self._ray.remote(**resources, max_calls=1, max_retries=0)(_train_in_worker)
        if config.ray_address is None and self.slots() == 0:
            there = self._ray.cluster_resources()
            self.close()
            raise UserError(
                f"a run needs {config.cpus_per_run} CPUs and {config.gpus_per_run:g} GPUs, but this machine has "
                f"{there.get('CPU', 0):g} and {there.get('GPU', 0):g}: ask for less, or pass a cluster's --ray-address"
            )

    def _connect(self) -> None:
        """Connect to the cluster, and hold SIGTERM back meanwhile: Ray's handlers exit at once, abort, or lose it."""
        handler = signal.getsignal(signal.SIGTERM)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        # Ray ends the processes that it starts with this signal: they must not inherit that it is held back.
        os.register_at_fork(after_in_child=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
        try:
            self._ray.init(log_to_driver=False, logging_level="ERROR", **self._cluster())
            stopped = signal.SIGTERM in signal.sigpending()
            if stopped:
                signal.sigwait({signal.SIGTERM})  # it is dealt with
        except SystemExit:  # Ray's: a thread of a library, which holds nothing back, got the signal
            stopped = True
        finally:
            signal.signal(signal.SIGTERM, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if stopped:
            self.close()
            raise Stopped(signal.SIGTERM)

    def _cluster(self) -> dict[str, Any]:
        """Say which cluster: the one at an address, or a new one of this machine, which leaves nothing behind."""
        if self._config.ray_address is not None:
            return {"address": self._config.ray_address}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._folder = tempfile.TemporaryDirectory(prefix="dae-ray-", ignore_cleanup_errors=True)
        return {"include_dashboard": False, "_temp_dir": self._folder.name}

    def slots(self) -> int:
        """Return what the cluster, as it is now, has room for."""
        there = self._ray.cluster_resources()
        room = int(there.get("CPU", 0) // self._config.cpus_per_run)
        if self._config.gpus_per_run:
            room = min(room, int(there.get("GPU", 0) / self._config.gpus_per_run))
        return min(room, self._config.jobs or room)

    def start(self, run: PlannedRun) -> Any:
        extensions = os.environ.get(VARIABLE, "")
        handle = self._task.remote(run.words, str(run.folder.log.resolve()), str(Path.cwd()), extensions)
        self._logs[handle] = run.folder.log
        return handle

    def exit_code(self, handle: Any) -> int | None:
        ready, _ = self._ray.wait([handle], timeout=0)
        if not ready:
            return None
        try:
            return int(self._ray.get(handle))
        except self._ray.exceptions.RayTaskError as error:  # it could not even begin
            with self._logs[handle].open("a") as file:
                file.write(f"{error}\n")
            return 2
        except self._ray.exceptions.RayError:  # the worker or its node is gone, or the task was cancelled
            return -signal.SIGKILL

    def stop(self, handle: Any) -> None:
        self._ray.cancel(handle)

    def close(self) -> None:
        self._ray.shutdown()
        if self._folder is not None:
            self._folder.cleanup()


def _train_in_worker(words: tuple[str, ...], log: str, folder: str, extensions: str) -> int:
    """Run `dae train` in a Ray worker, which does not use its output or working directory for anything else."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray's would exit without a checkpoint
    os.chdir(folder)
    with Path(log).open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ[VARIABLE] = extensions
    from dae.experiments.config import parse
    from dae.experiments.training.run import train

    def command() -> int:
        import_extensions()
        return train(parse(list(words)))

    try:
        return exit_code_of(command)
    except Exception as error:  # the last line of the log says what it was
        traceback.print_exc()
        announce(f"{type(error).__name__}: {one_line(error)}")
        return 1


LAUNCHERS: dict[str, Callable[[Launching], Launcher]] = {"local": LocalProcesses, "ray": RayCluster}
