"""Where the runs are not what the paper ran: fewer frames, fewer seeds, other settings."""

from dae.report.cells import Cells
from dae.report.paper import METHOD_SETTINGS, PROTOCOLS, SETTINGS, paper_name
from dae.report.text import DOMAINS, count_text, span


def departures(cells: Cells, domain: str) -> list[str]:
    """Say how a domain's runs depart from the paper's, nothing if they do not: "2M of 10M frames", "3 of 50 seeds"."""
    protocol = PROTOCOLS.get(domain)
    if protocol is None:
        return []
    inside = list(cells.where(domain=domain))
    names = {paper_name(cell.key.env) for cell in inside} - {None}
    actors = [cell.settings["actors"] for cell in inside if isinstance(cell.settings.get("actors"), int)]
    told = [
        _against("frames", [cell.frames for cell in inside], protocol.frames),
        _against("seeds", [len(cell.runs) for cell in inside], protocol.seeds),
        _against("actors", actors, SETTINGS["actors"]),
        _against("environments", [len(names)], protocol.environments),
        _other_settings(cells.where(domain=domain)),
    ]
    return [text for text in told if text]


def banner(cells: Cells) -> list[str]:
    """Return a line for each domain that departs from the paper."""
    found = {domain: departures(cells, domain) for domain in cells.values("domain")}
    return [f"{DOMAINS[domain]}: {', '.join(told)}" for domain, told in found.items() if told]


def _against(what: str, ours: list[int], paper: int) -> str:
    if not ours or set(ours) == {paper}:
        return ""
    if max(ours) <= paper:
        return f"{span(ours)} of {count_text(paper)} {what}"
    return f"{span(ours)} {what} (the paper: {count_text(paper)})"


def _other_settings(cells: Cells) -> str:
    found: dict[str, None] = {}
    for cell in cells:
        for name, paper in (SETTINGS | METHOD_SETTINGS.get(cell.key.method, {})).items():
            ours = cell.settings.get(name, paper)
            if name != "actors" and ours != paper:
                found[f"{name} {ours} (the paper: {paper})"] = None
    return ", ".join(found)
