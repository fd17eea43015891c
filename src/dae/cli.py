"""The `dae` command. Each subcommand imports what it needs when it runs, so that `dae --help` is quick."""

import difflib
import sys

import tyro

from dae import __version__


def theory(
    states: int = 5,
    actions: int = 2,
    gamma: float = 0.9,
    steps: int = 3,
    seed: int = 0,
) -> None:
    """Print a worked case: what the paper's losses converge to on a random finite MDP.

    Args:
        states: States of the MDP; the last ends an episode and the one before it cannot be reached.
        actions: Actions in each state.
        gamma: Discount factor.
        steps: Backup horizon n of the losses.
        seed: Seed of the random MDP, policy and bootstrap target.
    """
    from dae.theory.worked_case import worked_case

    print(worked_case(n_states=states, n_actions=actions, gamma=gamma, n_steps=steps, seed=seed))


def version() -> None:
    """Print the version."""
    print(f"dae-rl {__version__}")


COMMANDS = {"theory": theory, "version": version}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; a mistake in the input ends with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _require_known(arguments)
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="dae", description="Direct Advantage Estimation.", args=arguments
        )
    except ValueError as error:
        print(f"dae: {error}", file=sys.stderr)
        return 2
    return 0


def _require_known(arguments: list[str]) -> None:
    """Refuse a first word that is no command, with the one that it is most like."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        near = difflib.get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(COMMANDS)}"
        raise ValueError(f"{arguments[0]!r} is no command; {hint}")
