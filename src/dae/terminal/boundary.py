"""How errors reach the user: those that the user can fix become one line, all others keep their traceback."""

import sys
from collections.abc import Callable

from dae.errors import UserError, one_line
from dae.terminal.signals import Stopped


def announce(line: str) -> None:
    """Print a line that the user should know to stderr."""
    print(f"dae: {line}", file=sys.stderr, flush=True)


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; a mistake in the input ends with one line."""
    try:
        return command()
    except KeyboardInterrupt:
        return 130
    except Stopped as stopped:
        return stopped.exit_code
    except UserError as error:
        announce(one_line(error))
        return error.exit_code
    except OSError as error:
        if error.errno is None:  # not the system's: a full disk, missing permissions, …
            raise
        announce(one_line(error))
        return 2
