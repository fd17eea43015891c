"""What is under test: everything that reads files, as functions of a folder in which one of them is mutated."""

import contextlib
import hashlib
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import dae
import dae.cli
import dae.experiments.play.run
import dae.experiments.sweep.driver
import dae.experiments.synthetic.run
import dae.experiments.training.run
import dae.report.command
from dae.cli import main
from dae.experiments.config import TrainConfig
from dae.experiments.sweep.config import PlannedRun, SweepConfig
from dae.experiments.sweep.launchers import Launcher
from dae.runs import Episodes, RunFolder
from tests.experiments.small import weights_hash
from tests.fuzzing.originals import SWEEP, SYNTHETIC

OBSERVATIONS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


class Exited(Exception):
    """A command ended with an exit code other than 0."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"exit code {code}")


@dataclass(frozen=True)
class Reader:
    """A reader, the folder it reads, and which files in there are mutated how often."""

    name: str
    original: str
    read: Callable[[Path, random.Random], Any]  # returns what there is to compare; a refusal is raised
    targets: dict[str, int]
    in_suite: int  # cases in the default suite
    only_reads: bool = True
    noticed: tuple[str, ...] = ()  # how far this reader sees by another file that monitor.csv has lost something
    announces: str = "dae: "  # what a line begins with that tells of damage
    lists: bool = False  # it says what there is now, of damaged checkpoints too


def command(*words: str | Path) -> None:
    """Run `dae`."""
    code = main([str(word) for word in words])
    if code != 0:
        raise Exited(code)


def agent_facts(model: dae.PPO) -> Any:
    """What an agent does and how it would train on."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        assert tensor.isfinite().all(), f"{name} is not finite"
        digest.update(tensor.numpy().tobytes())
    moments = model.policy.optimizer.state_dict()
    for _, entries in sorted(moments["state"].items()):
        for _, tensor in sorted(entries.items()):
            assert tensor.isfinite().all(), "a moment is not finite"
            digest.update(tensor.numpy().tobytes())
    space = model.observation_space
    shape = getattr(space, "shape", None)
    if shape == (4,):
        observations: Any = OBSERVATIONS
    else:
        observations = np.zeros((2, *(shape or ())), space.dtype)
    advantages, values, probabilities = model.advantages(observations)
    assert np.isfinite(advantages).all()
    assert np.isfinite(values).all()
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-3)
    model.predict(observations, deterministic=True)
    settings = {name: repr(value) for name, value in vars(model).items() if isinstance(value, int | float | str | None)}
    return digest.hexdigest(), values.tolist(), settings, str(moments["param_groups"])


def score_facts(episodes: Episodes) -> list[Any]:
    """All of the episodes but the clock."""
    return [column.tolist() for column in (episodes.scores, episodes.lengths, episodes.frames)]


def status_facts(run: RunFolder) -> Any:
    status = run.read_status()
    return status.state, status.frames, status.episodes, status.score


def read_agent(folder: Path, rng: random.Random) -> Any:
    return agent_facts(dae.PPO.load(folder / "agent.zip", device="cpu"))


def read_run(folder: Path, rng: random.Random) -> Any:
    run = dae.load_run(folder / "run")
    best = dae.load_run(folder / "run", best=True)
    evaluations = run.evaluations.frames.tolist(), run.evaluations.scores.tolist()
    shown = run.make_env(2).reset().tolist()  # with statistics from the checkpoint
    return (
        run.config.to_json(),
        score_facts(run.episodes),
        evaluations,
        agent_facts(run.model),
        agent_facts(best.model),
        shown,
    )


def resume(folder: Path, rng: random.Random) -> Any:
    command("train", "--resume", folder / "run", "--pictures", "False", "--threads", "1")
    run = RunFolder(folder / "run")
    evaluations = run.read_evaluations()
    return (
        weights_hash(run),
        *score_facts(run.read_episodes()),
        evaluations.frames.tolist(),
        evaluations.scores.tolist(),
        status_facts(run),
    )


def play(folder: Path, rng: random.Random) -> Any:
    with printed() as told:
        command("play", folder / "run", "--episodes", "2", "--film", "none")
    return told.getvalue()


def list_runs(folder: Path, rng: random.Random) -> Any:
    with printed() as told:
        command("runs", folder)
    return told.getvalue()


def report(folder: Path, rng: random.Random) -> Any:
    """Write a report; its figures only sometimes, because they take most of the time."""
    out = folder.parent / "written"
    drawn = rng.random() < 0.1
    with contextlib.nullcontext() if drawn else patch("dae.report.writing._draw", lambda *_: NoFigures()):
        command("report", folder, "--out", out)
    content = json.loads((out / "summary.json").read_bytes())
    return json.dumps(content).replace(str(folder), "")


class NoFigures(dict[str, str]):
    """Stands for the figures of a report that are not drawn."""

    def __missing__(self, name: str) -> str:
        return "<svg></svg>"


def read_toml(folder: Path, rng: random.Random) -> Any:
    return read_settings(folder / "settings.toml")


def read_config_json(folder: Path, rng: random.Random) -> Any:
    return read_settings(folder / "config.json")


read: list[TrainConfig] = []


def keep_settings(config: TrainConfig) -> int:
    """Stand in for training: the settings were read."""
    read.append(config)
    return 0


def read_settings(path: Path) -> Any:
    only_read = dae.cli.COMMANDS["train"]._replace(run=f"{__name__}:keep_settings")
    with patch.dict(dae.cli.COMMANDS, train=only_read):
        command("train", "--config", path)
    return {name: str(value) for name, value in vars(read.pop()).items() if name != "config"}


def synthetic(folder: Path, rng: random.Random) -> Any:
    """Continue the chain experiment with a second seed; its figure is drawn only sometimes."""
    with contextlib.nullcontext() if rng.random() < 0.1 else patch("dae.experiments.synthetic.run.draw"):
        command("synthetic", "--seeds", "2", *SYNTHETIC, "--out", folder)
    return (folder / "synthetic.csv").read_text(), (folder / "means.csv").read_text()


class InPlace(Launcher):
    """Trains a run in this process, at once."""

    def __init__(self, config: SweepConfig) -> None:
        self._config = config

    def slots(self) -> int:
        return 1

    def start(self, run: PlannedRun) -> int:
        with run.folder.log.open("a") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            return main(["train", *run.words])

    def exit_code(self, handle: int) -> int:
        return handle

    def stop(self, handle: int) -> None:
        """It has ended already."""


def sweep(folder: Path, rng: random.Random) -> Any:
    """Look at finished runs, as a plan or as a sweep that continues."""
    dry = ["--dry-run"] if rng.random() < 0.5 else []
    driver = "dae.experiments.sweep.driver"
    with patch(f"{driver}.LAUNCHERS", {"local": InPlace}), patch(f"{driver}.SECONDS_BETWEEN_LOOKS", 0.0):
        command("sweep", *SWEEP, "--out", folder, *dry)
    return [status_facts(RunFolder(path.parent)) for path in sorted(folder.rglob("status.json"))]


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """What a command prints, which also goes to where it always goes."""
    told, real = io.StringIO(), sys.stdout
    with contextlib.redirect_stdout(told):
        yield told
    real.write(told.getvalue())


CHECKPOINT = {
    "run/checkpoints/*/state.json": 5,
    "run/checkpoints/*/environments.bin": 5,
    "run/checkpoints/*/agent.zip": 5,
    "run/checkpoints/*/rollout.safetensors": 2,
    "run/checkpoints/*/manifest.json": 3,
    "run/checkpoints/*": 1,
    "run/checkpoints": 1,
}
FILES = {"run/config.json": 4, "run/status.json": 3, "run/monitor.csv": 4}
# Of a run whose environments are normalised and whose agent is evaluated.
MORE = {
    "run/evaluations.csv": 2,
    "run/checkpoints/*/normalization.json": 3,
    "run/best/*/agent.zip": 1,
    "run/best/*/normalization.json": 1,
    "run/best": 1,
}
LOST = (
    "truncated",
    "emptied",
    "dropped a line",
    "doubled a line",
    "doubled",
    "20,000 lines more",
    "replaced by missing",
)

READERS = {
    reader.name: reader
    for reader in (
        Reader("agent", "agent", read_agent, {"agent.zip": 1}, 60),
        Reader("agent-images", "agent-images", read_agent, {"agent.zip": 1}, 20),
        Reader("run", "cartpole", read_run, FILES | CHECKPOINT | MORE, 50),
        Reader("resume", "cartpole", resume, FILES | CHECKPOINT | MORE | {"run/lock": 1}, 60, only_reads=False),
        Reader("resume-minatar", "breakout", resume, FILES | CHECKPOINT, 25, only_reads=False),
        Reader("play", "cartpole", play, FILES | CHECKPOINT | MORE, 40),
        Reader("config-toml", "toml", read_toml, {"settings.toml": 1}, 50),
        Reader("config-json", "json", read_config_json, {"config.json": 1}, 40),
        Reader(
            "runs",
            "runs",
            list_runs,
            {"**/config.json": 3, "**/status.json": 3, "**/monitor.csv": 1, "**/manifest.json": 1, "stopped/lock": 1},
            60,
            announces="left out: ",
            lists=True,
        ),
        Reader(
            "report",
            "finished",
            report,
            {"**/config.json": 3, "**/status.json": 3, "**/monitor.csv": 4},
            15,
            noticed=LOST,
            announces="left out: ",
        ),
        Reader(
            "report-archived",
            "archived",
            report,
            {"**/config.json": 1, "**/status.json": 1, "**/scores.json": 4},
            10,
            announces="left out: ",
        ),
        Reader(
            "synthetic",
            "synthetic",
            synthetic,
            {"settings.json": 2, "synthetic.csv": 3, "lock": 1},
            25,
            only_reads=False,
        ),
        Reader(
            "sweep",
            "sweep",
            sweep,
            {"**/config.json": 3, "**/status.json": 3, "**/monitor.csv": 1, "**/log.txt": 1, "**/manifest.json": 1},
            30,
            only_reads=False,
        ),
    )
}
