"""`dae variation`: train, let every policy play from the same states, and show how A and Q changed."""

from pathlib import Path

import torch

from dae.errors import UserError
from dae.experiments.variation.config import VariationConfig
from dae.experiments.variation.estimate import describe_time
from dae.experiments.variation.figure import draw
from dae.experiments.variation.study import Study
from dae.experiments.variation.summary import Result, describe, overview, write_summary, write_table
from dae.files import write_atomically
from dae.terminal.signals import Stopped, StopSignals

_KINDS = ("png", "svg", "pdf")


def run(config: VariationConfig) -> int:
    """Conduct the study, or the rest of it, and return the exit code."""
    if config.threads:
        torch.set_num_threads(config.threads)
    studies = [Study(plan) for plan in config.plans]
    for study in studies:
        study.require_own_folder()
    together = _Together(config.out, studies) if len(studies) > 1 else None
    print(describe_time(studies), flush=True)
    if config.dry_run:
        return 0
    results = []
    for study in studies:
        found = _conduct(study)
        if isinstance(found, int):
            return found
        results.append(found)
    if together is not None:
        together.conclude(results)
    return 0


def _conduct(study: Study) -> Result | int:
    """Return what a study found, or the exit code of one that was stopped."""
    figures = [study.file(f"variation.{kind}") for kind in _KINDS]
    table, summary = study.file("variation.csv"), study.file("summary.json")
    with study.opened():
        code = study.train()
        if code:
            return code
        with StopSignals():
            try:
                result = study.measure()
                write_table(result, table)
                write_summary(result, summary)
                draw([result], *figures)
            except Stopped as stopped:
                print(f"stopped by {stopped}; what is finished is kept. The same command continues.", flush=True)
                return stopped.exit_code
    print(f"\n{describe(result)}", flush=True)
    print(f"data    {table}\nnumbers {summary}\nfigure  {', '.join(map(str, figures))}", flush=True)
    return result


class _Together:
    """What is written of several games beside their folders."""

    def __init__(self, folder: Path, studies: list[Study]) -> None:
        self._summary = folder / "summary.txt"
        self._figures = [folder / f"variation.{kind}" for kind in _KINDS]
        taken = [path for path in (self._summary, *self._figures) if path.exists()]
        if taken and not any(study.file("settings.json").exists() for study in studies):
            raise UserError(f"{taken[0]} is there, but no study of these games: choose another --out")

    def conclude(self, results: list[Result]) -> None:
        """Write and show a table and a figure of all games."""
        draw(results, *self._figures)
        told = overview(results)
        write_atomically(self._summary, told.encode() + b"\n")
        print(f"\n{told}\nsummary {self._summary}\nfigure  {', '.join(map(str, self._figures))}", flush=True)
