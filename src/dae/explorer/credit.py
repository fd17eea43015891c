"""Where the return of a segment came from: choices of the agent, and everything else.

    G = Σ_k γ^k r_k + γ^n V̂(s_n) = V̂(s_0) + Σ_k γ^k Â(s_k, a_k) + Σ_k γ^k luck_k
    luck_k = r_k + γ V̂(s_{k+1}) − V̂(s_k) − Â(s_k, a_k)

The sum over k telescopes, so this holds for any V̂ and Â. What is called luck is what the environment did, plus the
errors of V̂ and Â. V̂(s_n) counts only where a segment was cut; where it terminated, nothing follows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dae.explorer.data import Episode, Segment

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Credit:
    """The credit of each step, not discounted; (T,) each."""

    of_choice: Numbers | None  # Â(s_t, a_t); None: there are no advantages, and luck has the choice's part as well
    luck: Numbers
    best: NDArray[np.int64]  # the action with the largest Â, the first of equal ones; the one taken without advantages
    costs: Numbers  # max_a Â(s_t, a) − Â(s_t, a_t)
    stakes: Numbers  # max_a Â(s_t, a) − min_a Â(s_t, a)
    cumulative: Numbers  # Σ γ^k Â(s_k, a_k) from the segment's first step on; of luck without advantages


@dataclass(frozen=True)
class Decomposition:
    """The parts of a return, seen from one step of a segment to its end; parts are discounted to that step."""

    origin: int  # the step
    value: float  # V̂ there
    choices: Numbers  # γ^k Â(s_k, a_k); zeros without advantages
    luck: Numbers  # γ^k luck_k
    total: float  # G, from the rewards and the bootstrap alone


def credit_of(episode: "Episode", gamma: float) -> Credit:
    """Return the credit of each step of an episode."""
    values = episode.values.astype(np.float64)
    following = np.append(values[1:], 0.0)
    for segment in episode.segments:
        following[segment.end - 1] = 0.0 if segment.terminated else segment.bootstrap
    surprise = episode.rewards + gamma * following - values
    if episode.advantages is None:
        zeros = np.zeros_like(surprise)
        return Credit(None, surprise, episode.actions, zeros, zeros, _sums(episode, gamma, surprise))
    advantages = episode.advantages.astype(np.float64)
    taken = np.take_along_axis(advantages, episode.actions[:, None], axis=1)[:, 0]
    largest = advantages.max(axis=1)
    return Credit(
        taken,
        surprise - taken,
        advantages.argmax(axis=1),
        largest - taken,
        largest - advantages.min(axis=1),
        _sums(episode, gamma, taken),
    )


def _sums(episode: "Episode", gamma: float, amounts: Numbers) -> Numbers:
    """Return the discounted sums of amounts from the first step of each segment on."""
    sums = np.empty_like(amounts)
    for segment in episode.segments:
        inside = slice(segment.start, segment.end)
        # A product after another, as on the page: saved there or here, the numbers are the same to the last digit.
        discounts = np.cumprod(np.r_[1.0, np.full(segment.end - segment.start - 1, gamma)])
        sums[inside] = np.cumsum(discounts * amounts[inside])
    return sums


def decompose(episode: "Episode", gamma: float, segment: "Segment", origin: int | None = None) -> Decomposition:
    """Return the parts of the return from a step of the segment on, by default from its first."""
    first = segment.start if origin is None else origin
    credit = credit_of(episode, gamma)
    discounts = gamma ** np.arange(segment.end - first, dtype=np.float64)
    part = slice(first, segment.end)
    rest = 0.0 if segment.terminated else gamma ** (segment.end - first) * segment.bootstrap
    return Decomposition(
        first,
        float(episode.values[first]),
        np.zeros_like(discounts) if credit.of_choice is None else discounts * credit.of_choice[part],
        discounts * credit.luck[part],
        float(discounts @ episode.rewards[part] + rest),
    )
