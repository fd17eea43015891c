"""Stopping on SIGTERM and Ctrl-C at once, but never in the middle of writing the last checkpoint."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Stopped(BaseException):
    """The run was asked to stop. Not an Exception, so that no environment catches it by accident."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.exit_code = 128 + number
        super().__init__(signal.Signals(number).name)


class StopSignals:
    """While in force, the first SIGTERM or SIGINT raises `Stopped`; from then on more of them change nothing.

    Processes that train together must stop at the same place: with `at_once` False a signal is only noted, in
    `received`, until `check` raises it. A terminal that is closed (SIGHUP) stops nothing.
    """

    def __init__(self, *, at_once: bool = True) -> None:
        self.received: int | None = None
        self._at_once = at_once
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._handle)
        self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # Once stopped, the process is on its way out: nothing may change its exit code any more.
        for number, handler in self._before.items():
            signal.signal(number, handler if self.received is None else signal.SIG_IGN)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = self.received is None
        self.received = number
        earlier = self._before[number]
        if callable(earlier) and earlier is not signal.default_int_handler:
            earlier(number, frame)
        if first and self._at_once:
            raise Stopped(number)

    def check(self) -> None:
        """Raise what was received: also again, in case some code swallowed the exception."""
        if self.received is not None:
            raise Stopped(self.received)
