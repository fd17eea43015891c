"""The `dae` command. Each subcommand imports what it needs when it runs, so that `dae --help` is quick."""

import sys
from collections.abc import Callable
from pathlib import Path

import tyro

from dae import __version__
from dae.errors import UserError, nearest
from dae.terminal.boundary import exit_code_of
from dae.terminal.options import read_options


def train(arguments: list[str]) -> int:
    """Train an agent, or continue a run that was stopped."""
    from dae.experiments.config import parse

    config = parse(arguments)
    from dae.experiments.training.run import train

    return train(config)


def sweep(arguments: list[str]) -> int:
    """Train a grid of runs: environments, estimators, networks, seeds."""
    from dae.experiments.sweep.config import SweepConfig

    config = read_options(SweepConfig, "dae sweep", arguments).checked()
    from dae.experiments.sweep.driver import sweep

    return sweep(config)


def play(arguments: list[str]) -> int:
    """Measure a trained agent over many episodes, and record one."""
    from dae.experiments.play import PlayConfig, play

    return play(read_options(PlayConfig, "dae play", arguments))


def runs(arguments: list[str]) -> int:
    """List the runs in a folder: state, frames, score, speed."""
    from dae.runs.listing import list_runs

    def choose(folder: tyro.conf.Positional[Path] = Path("runs")) -> Path:
        """List the runs in a folder.

        Args:
            folder: Folder that runs are kept in.
        """
        return folder

    print(list_runs(read_options(choose, "dae runs", arguments)))
    return 0


def synthetic(arguments: list[str]) -> int:
    """Run the paper's chain experiment: estimated against true advantages."""
    from dae.experiments.synthetic.config import SyntheticConfig

    config = read_options(SyntheticConfig, "dae synthetic", arguments).checked()
    from dae.experiments.synthetic.run import run

    return run(config)


def report(arguments: list[str]) -> int:
    """Put finished runs together: tables, statistics and figures beside the paper's, and a page with all of it."""

    def choose(
        runs: tyro.conf.Positional[tuple[Path, ...]] = (Path("runs"),), out: Path = Path("report")
    ) -> tuple[tuple[Path, ...], Path]:
        """Put finished runs together: tables, statistics and figures beside the paper's, and a page with all of it.

        Args:
            runs: Folders that runs are kept in.
            out: Folder that the report is written to.
        """
        return runs, out

    roots, out = read_options(choose, "dae report", arguments)
    from dae.report import analyse, read_results, write_report
    from dae.runs import find_runs
    from dae.terminal.progress import WorkProgress

    folders = find_runs(roots)
    with WorkProgress(len(folders), 0, "runs") as progress:
        records = read_results(folders, lambda: progress.advance(1, "reading", ""))
    analysis = analyse(records)
    print(analysis.counted)
    for line in analysis.departures:
        print(f"not the paper's size: {line}")
    print(write_report(analysis, roots, out))
    return 0


def theory(arguments: list[str]) -> int:
    """Print a worked case: what the paper's losses converge to on a random finite MDP."""

    def choose(
        states: int = 5, actions: int = 2, gamma: float = 0.9, steps: int = 3, seed: int = 0
    ) -> dict[str, float]:
        """Print a worked case: what the paper's losses converge to on a random finite MDP.

        Args:
            states: States of the MDP; the last ends an episode and the one before it cannot be reached.
            actions: Actions in each state.
            gamma: Discount factor.
            steps: Backup horizon n of the losses.
            seed: Seed of the random MDP, policy and bootstrap target.
        """
        return {"n_states": states, "n_actions": actions, "gamma": gamma, "n_steps": steps, "seed": seed}

    chosen = read_options(choose, "dae theory", arguments)
    from dae.theory.worked_case import worked_case

    print(worked_case(**chosen))  # type: ignore[arg-type]
    return 0


def version(arguments: list[str]) -> int:
    """Print the version."""
    print(f"dae-rl {__version__}")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "sweep": sweep,
    "play": play,
    "runs": runs,
    "synthetic": synthetic,
    "report": report,
    "theory": theory,
    "version": version,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; a mistake in the input ends with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return 0
    return exit_code_of(lambda: _command(arguments[0])(arguments[1:]))


def _help() -> str:
    lines = [f"  {name:11}{(command.__doc__ or '').splitlines()[0]}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: dae COMMAND [OPTIONS]",
            "",
            "Direct Advantage Estimation.",
            "",
            *lines,
            "",
            "dae COMMAND --help tells more.",
        ]
    )


def _command(name: str) -> Callable[[list[str]], int]:
    """Return a command, or refuse an unknown word, with the command that it is most like."""
    if name not in COMMANDS:
        hint = nearest(name, COMMANDS, f"choose one of {', '.join(COMMANDS)}")
        raise UserError(f"{name!r} is not a command{hint}")
    return COMMANDS[name]
