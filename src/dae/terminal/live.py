"""A display in the last lines of a terminal, which is drawn again and again in its place."""

import contextlib
import os
import sys
import termios
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from dae.terminal.boundary import announce


def can_redraw() -> bool:
    """Say whether stdout is a terminal that can be drawn on."""
    return sys.stdout.isatty() and Console().is_interactive


class LiveDisplay:
    """Shows something while it is in force. Nothing of it stays: what came of the work is for others to say."""

    def __init__(self, content: RenderableType) -> None:
        # A console of its own: on the one that all share, a display of someone else would suppress this one.
        self._live = Live(content, console=Console(), refresh_per_second=4, transient=True)
        self._held = contextlib.ExitStack()

    def show(self, content: RenderableType) -> None:
        """Show something else."""
        self._live.update(content, refresh=True)

    def __enter__(self) -> Self:
        self._held.enter_context(_no_traces_of_keys())
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._held:
            self._live.stop()


@contextlib.contextmanager
def passing_lines() -> Iterator[Callable[[str], None]]:
    """Return a function that shows what is being done: on a terminal until the next line or the end."""
    if not can_redraw():
        yield announce
        return
    with LiveDisplay("") as display:
        yield lambda line: display.show(Text(line, no_wrap=True, overflow="ellipsis"))


@contextlib.contextmanager
def _no_traces_of_keys() -> Iterator[None]:
    """Let the terminal not write ^C into the display when it is pressed."""
    before = _change_controls(lambda flags: flags & ~termios.ECHOCTL)
    try:
        yield
    finally:
        if before is not None and before & termios.ECHOCTL:
            _change_controls(lambda flags: flags | termios.ECHOCTL)


def _change_controls(change: Callable[[int], int]) -> int | None:
    """Change the terminal's local flags; return those before. A process in the background would be halted for it."""
    flags = 3  # the place of the local flags in a terminal's attributes
    try:
        terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
        if os.tcgetpgrp(terminal) != os.getpgrp():
            return None
        attributes = termios.tcgetattr(terminal)
        before = int(attributes[flags])
        attributes[flags] = change(before)
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    except (OSError, ValueError, termios.error):  # the input is closed, or no terminal
        return None
    return before
