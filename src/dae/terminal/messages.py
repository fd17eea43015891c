"""Lines for the user that are not the result of a command."""

import sys


def announce(line: str) -> None:
    """Say something that the user should know, beside the output."""
    print(f"dae: {line}", file=sys.stderr, flush=True)
