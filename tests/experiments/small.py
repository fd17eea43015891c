"""Small runs for tests, and what there is to compare of two runs."""

import csv
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401 (an optimizer imports it: with it here, forks need not do it again and again)

from dae.experiments.config import TrainConfig, parse
from dae.runs import RunFolder

BREAKOUT = ["MinAtar/Breakout-v1", "--finishing", "no", "--actors", "8", "--steps", "16", "--batch-size", "64"]
CARTPOLE = ["CartPole-v1", "--preset", "quick", "--actors", "4", "--steps", "32", "--batch-size", "64"]
ALWAYS = ["--epochs", "2", "--threads", "1", "--pictures", "False", "--checkpoint-seconds", "0"]


def small(out: Path, *words: str, of: list[str] = BREAKOUT) -> TrainConfig:
    return parse([*of, *ALWAYS, "--out", str(out), *words])


def weights_hash(folder: RunFolder) -> str:
    """A hash of the weights, the optimizer's state and the statistics of environments in the newest checkpoint."""
    checkpoint = folder.checkpoints.newest(print)
    assert checkpoint is not None
    archive = zipfile.ZipFile(io.BytesIO(checkpoint.parts["agent.zip"]))
    content = archive.read("policy.safetensors") + archive.read("optimizer.safetensors")
    content += checkpoint.parts.get("normalization.json", b"")
    return hashlib.sha256(content).hexdigest()


def episodes(folder: RunFolder) -> list[tuple[Any, ...]]:
    """All of the episode file but the clock."""
    rows = list(csv.DictReader(folder.monitor.read_text().splitlines()[1:]))
    return [(row["r"], row["l"], row["frames"]) for row in rows]


Outcome = tuple[str, list[tuple[Any, ...]], dict[str, Any]]


def outcome(folder: RunFolder) -> Outcome:
    status = folder.read_status()
    return (
        weights_hash(folder),
        episodes(folder),
        {key: getattr(status, key) for key in ("state", "frames", "episodes", "score")},
    )
