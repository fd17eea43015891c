"""Errors that the user can fix: the command line shows them as one line. Anything else keeps its traceback."""

import difflib
from collections.abc import Iterable

_LONGEST = 1_000  # characters of a message: names and values from files may be anything


class UserError(Exception):
    """One line for the user: the value, the rule and the remedy."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(readable(message))


class InvalidValue(UserError, ValueError):
    """An argument that cannot work; programs that call the library see a ValueError."""


class InUse(UserError):
    """Another process is using the run's folder; the exit code tells programs to try again later."""

    exit_code = 75


def nearest(name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """Return a hint for a misspelt name: "; did you mean CartPole-v1?", or `otherwise` if no name is similar.

    >>> nearest("thoery", ["train", "theory"]), nearest("x", ["train"], "choose train")
    ('; did you mean theory?', '; choose train')
    """
    found = difflib.get_close_matches(name, list(known), n=most)
    hint = f"did you mean {' or '.join(found)}?" if found else otherwise
    return f"; {hint}" if hint else ""


def one_line(error: BaseException) -> str:
    """Return an error's message without line breaks, as text that can be read."""
    return readable(" ".join(str(error).split()))


def readable(text: str) -> str:
    """Return a text without its middle, if it is very long, and with characters that a terminal would obey escaped.

    >>> readable("short"), readable("\\x1b[31mred"), len(readable("long" * 100_000))
    ('short', '\\\\x1b[31mred', 1000)
    """
    if len(text) > _LONGEST:
        end = _LONGEST // 4  # which often says what to do
        text = f"{text[: _LONGEST - end - 3]} … {text[-end:]}"
    return "".join(c if c.isprintable() or c.isspace() else ascii(c)[1:-1] for c in text)
