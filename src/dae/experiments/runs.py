"""Looking at runs: loading one, and listing many."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dae.experiments.config import TrainConfig, parse_settings
from dae.runs import Episodes, RunFolder, RunProblem, find_runs

if TYPE_CHECKING:
    from dae.agent import PPO


@dataclass(frozen=True)
class Run:
    """A training run: its settings, its scores, and its newest agent (loaded when it is asked for, and safely)."""

    folder: RunFolder
    config: TrainConfig

    @cached_property
    def episodes(self) -> Episodes:
        return self.folder.read_episodes()

    @cached_property
    def model(self) -> "PPO":
        from dae.experiments.state import load_agent

        warnings: list[str] = []
        checkpoint = self.folder.checkpoints.newest(warnings.append)
        if checkpoint is None:
            raise RunProblem(f"{self.folder.path} has no checkpoint yet: let it train for a while")
        return load_agent(checkpoint, device="cpu")


def load_run(path: str | Path) -> Run:
    """Return the run in a folder. No code of its files runs."""
    folder = RunFolder(Path(path))
    settings = folder.read_config()["settings"]
    return Run(folder, parse_settings(settings, folder.path / "config.json"))


def list_runs(root: Path) -> str:
    """Return a table of the runs at or below a folder: state, frames, score, speed."""
    if not root.is_dir():
        raise RunProblem(f"there is no folder {root}")
    rows, foreign = [], 0
    for folder in find_runs(root):
        try:
            config = load_run(folder.path).config
        except (RunProblem, KeyError, TypeError):
            foreign += 1
            continue
        status = folder.read_status()
        score, speed = status.get("score"), status.get("frames_per_second")
        rows.append(
            (
                str(folder.path.relative_to(root)),
                str(status.get("state", "unknown")),
                f"{status.get('frames', 0):,}/{config.frames:,}",
                "-" if score is None else f"{score:.2f}",
                "-" if not speed else f"{speed:,.0f}",
            )
        )
    table = _table([("run", "state", "frames", "last-100", "frames/s"), *rows]) if rows else f"no runs in {root}"
    return table + (f"\n{foreign} config.json there belong to something else" if foreign else "")


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
