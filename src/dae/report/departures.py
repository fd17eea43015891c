"""Where the runs are not what the paper ran: fewer frames, fewer seeds, other settings."""

from typing import Any

from dae.envs import families
from dae.report.cells import Cell, Cells
from dae.report.text import count_text, domain_name, span
from dae.runs import RunSettings
from dae.runs.settings import SETTING_NAMES, WITHOUT_EFFECT, preset_settings

# These are reported with the sizes, or name the cell.
_NOT_SETTINGS = WITHOUT_EFFECT | {"env", "advantage", "network", "frames", "actors"}


def departures(cells: Cells, domain: str) -> list[str]:
    """Say how a domain's runs depart from the paper's, nothing if they do not: "2M of 10M frames", "3 of 50 seeds"."""
    (family,) = (family for family in families() if family.name == domain)
    if family.protocol is None:
        return []
    inside = list(cells.where(domain=domain))
    games = {cell.key.env for cell in inside} & set(family.protocol.games)
    found = [
        _against("frames", [cell.frames for cell in inside], family.protocol.frames),
        _against("seeds", [len(cell.runs) for cell in inside], family.protocol.seeds),
        _against("actors", [cell.settings.actors for cell in inside], max(_paper(cell)["actors"] for cell in inside)),
        _against("environments", [len(games)], len(family.protocol.games)),
        ", ".join(dict.fromkeys(text for cell in inside for text in _other_settings(cell))),
    ]
    return [text for text in found if text]


def banner(cells: Cells) -> list[str]:
    """Return a line for each domain that departs from the paper."""
    found = {domain: departures(cells, domain) for domain in cells.values("domain")}
    return [f"{domain_name(domain)}: {', '.join(told)}" for domain, told in found.items() if told]


def _against(what: str, ours: list[int], paper: int) -> str:
    if not ours or set(ours) == {paper}:
        return ""
    if max(ours) <= paper:
        return f"{span(ours)} of {count_text(paper)} {what}"
    return f"{span(ours)} {what} (the paper: {count_text(paper)})"


def _other_settings(cell: Cell) -> list[str]:
    """Name the settings that differ from the paper's preset."""
    paper, ours = _paper(cell), cell.settings.to_json()
    names = [name for name in SETTING_NAMES if name not in _NOT_SETTINGS]
    return [f"{name} {ours[name]} (the paper: {paper[name]})" for name in names if ours[name] != paper[name]]


def _paper(cell: Cell) -> dict[str, Any]:
    """Return the settings of the paper's preset."""
    return RunSettings().to_json() | preset_settings(cell.key.env, cell.key.method, "paper")
