"""`dae completion`: scripts that let a shell complete commands, options and their choices."""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from dae.terminal.help import positional_fields
from dae.terminal.options import option_name

Shell = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True)
class CompletionConfig:
    """Print a script that lets a shell complete commands, options and choices. Save it where the shell looks for it.

        dae completion bash > ~/.local/share/bash-completion/completions/dae
        dae completion zsh > ~/.zfunc/_dae
        dae completion fish > ~/.config/fish/completions/dae.fish

    For zsh, ~/.zshrc needs: fpath+=~/.zfunc; autoload -U compinit; compinit
    """

    shell: Annotated[Shell, tyro.conf.Positional]
    """Shell that the script is for."""


class Option(NamedTuple):
    """What can follow an option."""

    choices: tuple[str, ...]
    many: bool = False  # it takes several values


class Completions(NamedTuple):
    """What can follow a command: its options, and words without a name."""

    options: Mapping[str, Option]
    words: tuple[str, ...]


def completions_of(what: type) -> Completions:
    """Return what can follow a command with these options."""
    hints = typing.get_type_hints(what, include_extras=True)
    nameless = positional_fields(what)
    named = [field for field in dataclasses.fields(what) if field.name not in nameless]
    options = {option_name(field.name): _option(hints[field.name]) for field in named} | {"--help": Option(())}
    words = tuple(word for name in nameless for word in choices_of(hints[name]))
    files = any(_is_path(hints[name]) for name in nameless)
    return Completions(options, words if words or files else tuple(options))


def _option(kind: Any) -> Option:
    inside = typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind
    return Option(choices_of(kind), many=typing.get_origin(inside) is tuple)


def _is_path(kind: Any) -> bool:
    return kind is Path or any(map(_is_path, typing.get_args(kind)))


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the words that a value can be; none if it can be anything.

    >>> choices_of(bool), choices_of(tuple[Literal["gif", "none"], ...]), choices_of(float | None)
    (('yes', 'no'), ('gif', 'none'), ())
    """
    if kind is bool:
        return ("yes", "no")
    inside = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return tuple(map(str, inside))
    if typing.get_origin(kind) is Annotated:
        shown = [mark.metavar for mark in kind.__metadata__ if isinstance(mark, PrimitiveConstructorSpec)]
        listed = re.fullmatch(r"\{(.*)\}", shown[0]) if shown else None
        return tuple(listed[1].split(",")) if listed else () if shown else choices_of(inside[0])
    if typing.get_origin(kind) in (tuple, typing.Union, types.UnionType):
        return tuple(choice for part in inside for choice in choices_of(part))
    return ()


# Scripts. Where there are no choices, the shell completes files. -----------------------------------------------------


def _bash(commands: Mapping[str, Completions]) -> str:
    return f"""# bash completion of dae
_dae() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} option= choices= i after
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "{" ".join(commands)}" -- "$current"))
        return
    fi
    [[ $current == "=" ]] && current=
    for ((i = COMP_CWORD - 1; i > 1; i--)); do
        if [[ ${{COMP_WORDS[i]}} == --* ]]; then
            option=${{COMP_WORDS[i]}}
            after=$((COMP_CWORD - i))
            [[ ${{COMP_WORDS[i + 1]}} == "=" ]] && after=$((after - 1))
            ((after > 1)) && option+=+
            break
        fi
    done
    [[ $current == -* ]] && option=-
    case "${{COMP_WORDS[1]}} $option" in
{_cases(commands, "        ", lambda words: f'choices="{words}"')}
    esac
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
}}
complete -o default -F _dae dae
"""


def _zsh(commands: Mapping[str, Completions]) -> str:
    return f"""#compdef dae
# zsh completion of dae
_dae() {{
    local option= i
    local -a choices
    if (( CURRENT == 2 )); then
        compadd -- {" ".join(commands)}
        return
    fi
    for (( i = CURRENT - 1; i > 2; i-- )); do
        if [[ $words[i] == --*=* ]]; then option=${{words[i]%%=*}}+; break; fi
        if [[ $words[i] == --* ]]; then
            option=$words[i]
            if (( i < CURRENT - 1 )); then option+=+; fi
            break
        fi
    done
    if [[ $words[CURRENT] == --*=* ]]; then
        option=${{words[CURRENT]%%=*}}
        compset -P "*="
    elif [[ $words[CURRENT] == -* ]]; then
        option=-
    fi
    case "$words[2] $option" in
{_cases(commands, "        ", lambda words: f"choices=({words})")}
    esac
    if (( $#choices )); then compadd -a choices; else _files; fi
}}
if [[ $funcstack[1] == _dae ]]; then _dae "$@"; else compdef _dae dae; fi
"""


def _cases(commands: Mapping[str, Completions], indent: str, assign: Callable[[str], str]) -> str:
    """Return the branches that bash and zsh share: by command and the last option, with + if it has a value already."""
    lines = []
    for name, (options, words) in commands.items():
        cases = {f"'{name} -'": tuple(options)}
        for option, (choices, many) in options.items():
            again = [f"'{name} {option}+'"] if many else []
            cases |= dict.fromkeys([f"'{name} {option}'", *again] if choices else again, choices)
        cases |= {f"'{name} '|'{name} '*+": words}
        lines += [f"{indent}{case}) {assign(' '.join(choices))} ;;" for case, choices in cases.items()]
    return "\n".join(lines)


def _fish(commands: Mapping[str, Completions]) -> str:
    lines = ["# fish completion of dae", f"complete -c dae -f -n __fish_use_subcommand -a '{' '.join(commands)}'"]
    for name, (options, words) in commands.items():
        seen = f"complete -c dae -n '__fish_seen_subcommand_from {name}'"
        if words and not words[0].startswith("-"):
            lines.append(f"{seen} -a '{' '.join(words)}'")
        for option, (choices, _) in options.items():
            takes = f" -x -a '{' '.join(choices)}'" if choices else "" if option == "--help" else " -r"
            lines.append(f"{seen} -l {option.removeprefix('--')}{takes}")
    return "\n".join([*lines, ""])


SCRIPTS: dict[Shell, Callable[[Mapping[str, Completions]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
