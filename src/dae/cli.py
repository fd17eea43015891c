"""The `dae` command. A subcommand loads what it needs when it runs, so that `dae --help` is quick."""

import sys
from importlib import import_module
from typing import Any, NamedTuple

from dae import __version__
from dae.errors import UserError, nearest
from dae.rules import check_fields
from dae.terminal.boundary import exit_code_of
from dae.terminal.extensions import import_extensions
from dae.terminal.options import read_options
from dae.terminal.output import lasting_output


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
    "runs": Command(
        "List the runs in a folder: state, frames, score, speed.",
        "dae.runs.listing:ListingConfig",
        "dae.runs.listing:list_runs",
    ),
    "synthetic": Command(
        "Run the paper's chain experiment: estimated against true advantages.",
        "dae.experiments.synthetic.config:SyntheticConfig",
        "dae.experiments.synthetic.run:run",
    ),
    "report": Command(
        "Summarise finished runs: tables, statistics and figures beside the paper's, and a page with all of it.",
        "dae.report.command:ReportConfig",
        "dae.report.command:report",
    ),
    "theory": Command(
        "Print a worked case: what the paper's losses converge to on a random finite MDP.",
        "dae.theory.worked_case:WorkedCase",
        "dae.theory.worked_case:print_worked_case",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; a mistake in the input ends with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with lasting_output():
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_help())
            return 0
        if arguments[0] == "version":
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
    if hasattr(config, "require_consistent"):
        config.require_consistent()
    code: int = _load(COMMANDS[name].run)(config)
    return code


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _help() -> str:
    lines = [f"  {name:11}{command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: dae COMMAND [OPTIONS]",
            "",
            "Direct Advantage Estimation.",
            "",
            *lines,
            f"  {'version':11}Print the version.",
            "",
            "Run dae COMMAND --help for its options.",
        ]
    )
