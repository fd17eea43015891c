"""Modules of the user's that every command imports first: they register families and estimators of their own.

DAE_IMPORT names them, separated by commas. It is for the person at the keyboard to set; no file can.
"""

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path

from dae.errors import UserError, one_line

VARIABLE = "DAE_IMPORT"


def import_extensions() -> None:
    """Import what the environment variable names; modules in the working directory are found last."""
    with contextlib.suppress(FileNotFoundError):  # a working directory that was deleted
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
    for name in filter(None, os.environ.get(VARIABLE, "").split(",")):
        try:
            import_module(name.strip())
        except ImportError as error:
            raise UserError(
                f"{VARIABLE} names {name.strip()!r}, which cannot be imported: {one_line(error)}"
            ) from error
