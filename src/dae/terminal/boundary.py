"""How errors and warnings reach the user: in one line each; an error that the user cannot fix keeps its traceback."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator

from dae.errors import UserError, one_line
from dae.terminal.signals import Stopped


def announce(line: str) -> None:
    """Print a line that the user should know to stderr."""
    print(f"dae: {line}", file=sys.stderr, flush=True)


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; a mistake in the input ends with one line."""
    try:
        with _warnings_in_one_line():
            return command()
    except KeyboardInterrupt:
        announce("stopped by Ctrl-C")
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


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """While in force, a warning is a line for the user, once: without the place in the source that Python adds.

    Whoever asks Python for warnings (`python -W`, PYTHONWARNINGS) gets them as Python shows them.
    """
    told = set()

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        plain = re.sub(r"\x1b\[[\d;]*m", "", str(message)).removeprefix("WARN: ")  # gymnasium's colours and prefix
        line = one_line(Warning(plain))
        if line not in told:
            told.add(line)
            announce(line)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.showwarning = tell
        yield
