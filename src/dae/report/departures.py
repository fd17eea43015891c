"""Where the runs are not what the paper ran: fewer frames, fewer seeds, other settings."""

from collections.abc import Callable
from typing import Any, NamedTuple

from dae.envs import families
from dae.report.cells import Cell, Cells
from dae.report.text import domain_name, span
from dae.runs import RunSettings
from dae.runs.settings import SETTING_NAMES, WITHOUT_EFFECT, preset_settings
from dae.text import count_text

# These are reported with the sizes, or name the cell.
_NOT_SETTINGS = WITHOUT_EFFECT | {"env", "advantage", "network", "frames", "actors"}

# What the paper does not say.
_LEFT_OPEN = {"minibatches", "drop_last", "bootstrap_truncations", "minatar_version", "atari_trunk"}

# What a setting is called in the banner: with its value, or for single values; one that is not here has its own name.
_IN_WORDS: dict[str, str | dict[Any, str]] = {
    "steps": "{} steps between updates",
    "batch_size": "minibatches of {} steps",
    "epochs": {1: "1 epoch per update", ...: "{} epochs per update"},
    "learning_rate": "learning rate {}",
    "clip_range": "clip range {}",
    "anneal": {True: "with annealing", False: "without annealing"},
    "gamma": "discount factor {}",
    "gae_lambda": "λ of GAE {}",
    "ent_coef": "entropy weight {}",
    "critic_coef": "critic weight {}",
    "max_grad_norm": {None: "without gradient clipping", ...: "gradients clipped at norm {}"},
    "normalize": {True: "with normalised advantages", False: "without normalised advantages"},
    "correction": "correction {}",
    "row_length": {
        None: "trajectories of all steps between updates",
        1: "single steps in place of trajectories",
        ...: "trajectories of {} steps",
    },
    "minibatches": {"rows": "minibatches of equal rows", "segments": "minibatches of whole segments"},
    "drop_last": {True: "incomplete minibatches dropped", False: "incomplete minibatches kept"},
    "kl_coef": {None: "clipping in place of a KL penalty", ...: "KL penalty of weight {} in place of clipping"},
    "bootstrap_truncations": {True: "with bootstrap at time limits", False: "without bootstrap at time limits"},
    "separate_networks": {True: "separate networks for policy and critic", False: "one network for policy and critic"},
    "extra_mlp": {True: "with 64-64 layers behind the trunk", False: "without 64-64 layers behind the trunk"},
    "atari_trunk": {"paper": "the trunk of the paper's figure", "code": "the trunk of the authors' code"},
    "minatar_version": "the rules of MinAtar {}",
    "sticky_actions": "sticky actions of probability {}",
    "backend": {"dae": "the games of dae-rl", "sb3": "the games of Stable-Baselines3"},
    "implementation": {"dae": "the PPO of dae-rl", "sb3": "the PPO of Stable-Baselines3"},
    "finishing": {True: "with the finishing phase", False: "without the finishing phase"},
}


class _Behind(NamedTuple):
    """Something that the authors' code did, and the paper's numbers have in them."""

    told: str
    is_here: Callable[[RunSettings], bool]  # whether a run did the same


_BEHIND_THE_NUMBERS = (
    _Behind(
        "minibatches were whole segments between episode ends, and what did not fill one was dropped "
        "(minibatches, drop_last)",
        lambda run: run.advantage == "gae" or (run.minibatches == "segments" and run.drop_last),
    ),
    _Behind(
        "GAE's networks had 64-64 layers between trunk and heads, DAE's did not (extra_mlp)",
        lambda run: run.advantage != "gae" or run.extra_mlp,
    ),
    _Behind(
        "episodes that a time limit ended were bootstrapped with 0 (bootstrap_truncations)",
        lambda run: run.family.name != "atari" or not run.bootstrap_truncations,
    ),
    _Behind(
        "Seaquest was that of MinAtar 1.0.10, with one step more air (minatar_version)",
        lambda run: run.env != "MinAtar/Seaquest-v1" or run.minatar_version == "1.0.10",
    ),
    _Behind(
        "Atari's network had 32-64-64 channels, not the figure's 32-32-32 (atari_trunk)",
        lambda run: run.family.name != "atari" or run.network == "deep" or run.atari_trunk == "code",
    ),
)


def behind_the_numbers(cells: Cells, domain: str) -> list[str]:
    """Name what the authors' code did where the paper leaves it open, and these runs did not; none without a paper."""
    inside = list(cells.where(domain=domain))
    if not any(family.protocol for family in families() if family.name == domain):
        return []
    return [known.told for known in _BEHIND_THE_NUMBERS if not all(known.is_here(cell.settings) for cell in inside)]


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


def repeats_the_paper(cell: Cell) -> bool:
    """Say whether runs have the paper's size and settings, but for what the paper leaves open and for the seeds."""
    protocol = cell.settings.family.protocol
    if protocol is None or cell.key.env not in protocol.games:
        return False
    ours, paper = cell.settings.to_json(), _paper(cell)
    left_open = _LEFT_OPEN | ({"extra_mlp"} if cell.key.method == "gae" else set())  # the authors' GAE had it
    asked = [name for name in SETTING_NAMES if name not in _NOT_SETTINGS | left_open]
    same = all(ours[name] == paper[name] for name in (*asked, "actors"))
    return same and cell.frames == protocol.frames


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
    return [_in_words(name, ours[name], paper[name]) for name in names if ours[name] != paper[name]]


def _in_words(name: str, ours: Any, paper: Any) -> str:
    """Say what a setting is: "without the finishing phase", "discount factor 0.9 (the paper: 0.99)"."""
    words = _IN_WORDS.get(name, f"{name} {{}}")
    if isinstance(words, dict):
        if ours in words:
            return words[ours]
        if paper in words or ... not in words:  # the paper's is the absence of it
            return words.get(..., f"{name} {{}}").format(ours)
        words = words[...]
    return f"{words.format(ours)} ({'default' if name in _LEFT_OPEN else 'the paper'}: {paper})"


def _paper(cell: Cell) -> dict[str, Any]:
    """Return the settings of the paper's preset."""
    return RunSettings().to_json() | preset_settings(cell.key.env, cell.key.method, "paper")
