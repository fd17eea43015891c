"""Ids of environments, as gymnasium has them: `module:Name-v0` is the id `Name-v0`, after the module was imported.

To import a module runs its code. So only someone at the keyboard, or a program, can ask for it: a file that names a
module is refused, unless its reader is told to trust it.
"""

from importlib import import_module

from dae.errors import UserError, one_line


def plain_id(env_id: str) -> str:
    """Return an id without its module.

    >>> plain_id("mypackage.worlds:Maze-v0"), plain_id("MinAtar/Breakout-v1")
    ('Maze-v0', 'MinAtar/Breakout-v1')
    """
    return env_id.removeprefix(f"{module_of(env_id)}:") if module_of(env_id) else env_id


def module_of(env_id: str) -> str:
    """Return the module of an id; nothing if it has none.

    >>> module_of("mypackage.worlds:Maze-v0"), module_of("../worlds:Maze-v0")
    ('mypackage.worlds', '')
    """
    name, _, rest = env_id.partition(":")
    return name if rest and all(part.isidentifier() for part in name.split(".")) else ""


def import_module_of(env_id: str) -> None:
    """Import the module of an id, which registers the environment."""
    name = module_of(env_id)
    if not name:
        return
    try:
        import_module(name)
    except (Exception, SystemExit) as error:  # the module's own, whatever it is
        hint = f"; did you mean {name.removesuffix('.py')}:{plain_id(env_id)}?" if name.endswith(".py") else ""
        raise UserError(
            f"{env_id} cannot be made: importing {name} failed: {type(error).__name__}: {one_line(error)}{hint}"
        ) from error


def require_trust(env_id: str, where: object, remedy: str = "--trust", *, trust: bool) -> None:
    """Refuse an id with a module that a file has brought along, unless the user trusts the file."""
    if module_of(env_id) and not trust:
        raise UserError(
            f"{where} has the environment {env_id!r}, which imports and runs the module {module_of(env_id)!r}: add "
            f"{remedy} if you trust it"
        )


def trust_option(env_id: str) -> str:
    """Return what a command needs besides a file with this id."""
    return " --trust" if module_of(env_id) else ""
