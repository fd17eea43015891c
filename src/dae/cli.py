"""The `dae` command. A subcommand loads what it needs when it runs, so that `dae --help` is quick."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from dae import __version__
from dae.errors import UserError, nearest
from dae.rules import check_fields
from dae.terminal.boundary import exit_code_of
from dae.terminal.extensions import import_extensions
from dae.terminal.options import read_options
from dae.terminal.output import lasting_output

if TYPE_CHECKING:
    from dae.terminal.completion import CompletionConfig


class Command(NamedTuple):
    """A subcommand: what it does, the class of its options (or a function that reads them), and what runs with them."""

    summary: str
    options: str
    run: str


COMMANDS = {
    "train": Command(
        "Train an agent, or continue a run that was stopped.",
        "dae.experiments.config:parse",
        "dae.experiments.training.run:train",
    ),
    "sweep": Command(
        "Train a grid of runs: environments, estimators, networks, seeds.",
        "dae.experiments.sweep.config:SweepConfig",
        "dae.experiments.sweep.driver:sweep",
    ),
    "tune": Command(
        "Search for good hyperparameters with Optuna.",
        "dae.experiments.tune.config:TuneConfig",
        "dae.experiments.tune.run:tune",
    ),
    "play": Command(
        "Measure a trained agent over many episodes, and record one.",
        "dae.experiments.play.config:PlayConfig",
        "dae.experiments.play.run:play",
    ),
    "explore": Command(
        "Show which decisions of a trained agent mattered, as a page.",
        "dae.experiments.explore.config:ExploreConfig",
        "dae.experiments.explore.run:explore",
    ),
    "runs": Command(
        "List the runs in a folder: state, frames, score, speed.",
        "dae.runs.listing:ListingConfig",
        "dae.runs.listing:list_runs",
    ),
    "synthetic": Command(
        "Run the paper's chain experiment: estimated and true advantages.",
        "dae.experiments.synthetic.config:SyntheticConfig",
        "dae.experiments.synthetic.run:run",
    ),
    "variation": Command(
        "Run the paper's variation study: how A and Q change in training.",
        "dae.experiments.variation.config:parse",
        "dae.experiments.variation.run:run",
    ),
    "quality": Command(
        "Measure how good an agent's advantages are, by Monte Carlo.",
        "dae.experiments.quality.config:QualityConfig",
        "dae.experiments.quality.run:run",
    ),
    "report": Command(
        "Summarise finished runs: tables, figures, statistics, and a page.",
        "dae.report.command:ReportConfig",
        "dae.report.command:report",
    ),
    "archive": Command(
        "Write compact copies of finished runs, which reports can read.",
        "dae.report.archive:ArchiveConfig",
        "dae.report.archive:archive",
    ),
    "theory": Command(
        "Print what the paper's losses converge to on a small random MDP.",
        "dae.theory.worked_case:WorkedCase",
        "dae.theory.worked_case:print_worked_case",
    ),
    "completion": Command(
        "Print a script that lets bash, zsh or fish complete all this.",
        "dae.terminal.completion:CompletionConfig",
        "dae.cli:print_completion",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; a mistake in the input ends with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with lasting_output():
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_help())
            return 0
        if arguments[0] in ("version", "--version", "-V"):
            print(f"dae-rl {__version__}")
            return 0
        return exit_code_of(lambda: _run(*arguments))


def _run(name: str, *arguments: str) -> int:
    import_extensions()
    if name not in COMMANDS:
        hint = nearest(name, [*COMMANDS, "version"], f"choose one of {', '.join(COMMANDS)}, version")
        raise UserError(f"{name!r} is not a command{hint}")
    options = _load(COMMANDS[name].options)
    config = read_options(options, f"dae {name}", arguments) if isinstance(options, type) else options(list(arguments))
    check_fields(config)
    if not getattr(config, "resume", None):  # which has its own folder
        _require_folder(getattr(config, "out", None))
    if hasattr(config, "require_consistent"):
        config.require_consistent()
    code: int = _load(COMMANDS[name].run)(config)
    return code


def print_completion(config: "CompletionConfig") -> int:
    """Print the script for a shell, with the estimators, presets and other choices that there are now."""
    from dae.terminal.completion import SCRIPTS, Completions, completions_of

    commands = {name: completions_of(_options_class(command)) for name, command in COMMANDS.items()}
    print(SCRIPTS[config.shell]({**commands, "version": Completions({}, ())}), end="")
    return 0


def _options_class(command: Command) -> type:
    options = _load(command.options)
    found: type = options if isinstance(options, type) else get_type_hints(options)["return"]
    return found


def _require_folder(path: Path | None) -> None:
    """Refuse a place for results that a file already takes, before any work is done for it."""
    taken = next((place for place in (path, *path.parents) if place.exists()), None) if path else None
    if taken and not taken.is_dir():
        raise UserError(f"{taken} cannot be a folder, because a file is in its place: choose another --out")
    if taken and not os.access(taken, os.W_OK | os.X_OK):
        raise UserError(f"{taken} cannot be written to: choose another --out")


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _help() -> str:
    lines = [f"  {name:12}{command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: dae COMMAND [OPTIONS]",
            "",
            "Direct Advantage Estimation.",
            "",
            *lines,
            f"  {'version':12}Print the version.",
            "",
            "Run dae COMMAND --help for its options.",
        ]
    )
