"""How estimated advantages differ from true ones, where the truth is known up to an error.

The error of the truth is not the estimator's: its variance is subtracted from squared errors, orders of actions count
only where the truth is sure of them, and the length of the true gradient is taken from two independent halves of the
rollouts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import PyTorchObs

from dae.agent import PPO
from dae.agent.observations import pick
from dae.experiments.monte_carlo import ActionValues

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SURE = 3.0  # standard errors by which the truth tells two actions apart
_GROUPS = 16  # of states, for the errors of the measures


@dataclass(frozen=True)
class Measured:
    """A number, and its standard error over states (jackknife)."""

    value: float
    error: float


@dataclass(frozen=True)
class Quality:
    """How good the advantages of one critic are; sums over actions have equal weights unless they say otherwise."""

    bias: Measured  # mean of Â − A
    mse: Measured  # mean of (Â − A)², of a single estimate
    noise: Measured  # the part of it that comes from the chance in the rollout that was looked at
    relative: Measured  # mse / mean of A²: an estimator that always says 0 has 1
    relative_under_policy: (
        Measured  # the same with actions weighted by π: those that the policy hardly takes count little
    )
    rank_correlation: Measured  # Kendall's τ in a state, over the pairs of actions that the truth tells apart
    best_action: Measured  # share of the states in which the truly best action has the largest estimate
    gradient_cosine: Measured  # between the policy gradients with estimated and with true advantages
    centring: Measured  # root mean square of Σ_a π(a|s) Â(s, a)


class Truth:
    """True advantages of S states up to their errors, and what they say for sure."""

    def __init__(self, values: ActionValues, model: PPO, observations: PyTorchObs) -> None:
        self.values, self._model, self._observations = values, model, observations
        states = len(values.probabilities)
        self.groups = np.array_split(np.arange(states), min(_GROUPS, states))
        n = values.returns.shape[-1]
        samples = values.advantages.samples
        self._gradients = [self.gradients(part.mean(-1)) for part in (samples[..., : n // 2], samples[..., n // 2 :])]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """1 where the first action is surely better than the second, −1 where it is worse, (S, A, A)."""
        q = self.values.returns
        differences = q[:, :, None] - q[:, None]
        mean = differences.mean(-1)
        n = q.shape[-1]
        error = differences.std(-1, ddof=1) / np.sqrt(n)
        return np.asarray(np.sign(mean) * (np.abs(mean) > sure_errors(n) * error), np.int64)

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """The action that is surely better than all others, (S,); −1 if there is none."""
        better = (self.order > 0).sum(-1) == self.order.shape[1] - 1
        return np.where(better.any(1), better.argmax(1), -1)

    def gradients(self, advantages: Floats) -> Floats:
        """Return Σ_s Σ_a ∇π(a|s) A(s, a) over the states of each group, (groups, weights)."""
        policy = self._model.policy
        weights = torch.as_tensor(advantages, dtype=torch.float32, device=self._model.device)
        rows = []
        for group in self.groups:
            policy.zero_grad()
            seen = pick(self._observations, group)
            (policy.log_probs(seen).exp() * weights[group]).sum().backward()  # type: ignore[no-untyped-call]
            rows.append(
                torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None]).double().cpu().numpy()
            )
        policy.zero_grad()
        return np.stack(rows)

    def cosine(self, gradients: Floats, groups: Flags) -> float:
        """Return the cosine between a gradient and the true one, over some groups of states."""
        first, second, estimated = (part[groups].sum(0) for part in (*self._gradients, gradients))
        length = first @ second  # whose errors are independent: its expectation is the square of the true length
        norm = np.sqrt(length) * np.linalg.norm(estimated) if length > 0 else 0.0
        return float(estimated @ (first + second) / 2 / norm) if norm > 0 else np.nan


def judge(estimates: Floats, truth: Truth) -> Quality:
    """Compare estimates, (S, A, R) in R rollouts, with the truth."""
    values = truth.values
    exact, variance = values.advantages.mean, values.advantages.error**2
    errors = estimates - exact[..., None]
    squared = (errors**2).mean(-1) - variance
    noise = estimates.var(-1, ddof=1) if estimates.shape[-1] > 1 else np.full(exact.shape, np.nan)
    signal = exact**2 - variance
    acting = values.probabilities
    concordance = _concordance(estimates, truth.order)
    largest = estimates == estimates.max(1, keepdims=True)
    chance = np.take_along_axis(largest / largest.sum(1, keepdims=True), truth.best.clip(0)[:, None, None], 1)[:, 0]
    right = np.where(truth.best >= 0, chance.mean(-1), np.nan)  # of equal estimates, one is taken by chance
    centre = (np.einsum("sa,sar->sr", acting, estimates) ** 2).mean(-1)
    gradients = [truth.gradients(sample) for sample in np.moveaxis(estimates, -1, 0)]

    def over(per_state: Floats) -> Callable[[Flags], float]:
        return lambda groups: _mean(per_state[_members(truth.groups, groups)])

    def ratio(above: Floats, below: Floats) -> Callable[[Flags], float]:
        def of(groups: Flags) -> float:
            divisor = over(below)(groups)  # an estimate of a mean square; where noise is larger, nothing is known
            return over(above)(groups) / divisor if divisor > 0 else np.nan

        return of

    def measured(of: Callable[[Flags], float]) -> Measured:
        return _jackknife(of, len(truth.groups))

    return Quality(
        bias=measured(over(errors.mean((1, 2)))),
        mse=measured(over(squared.mean(1))),
        noise=measured(over(noise.mean(1))),
        relative=measured(ratio(squared.mean(1), signal.mean(1))),
        relative_under_policy=measured(ratio((acting * squared).sum(1), (acting * signal).sum(1))),
        rank_correlation=measured(over(concordance)),
        best_action=measured(over(right)),
        gradient_cosine=measured(lambda groups: _mean(np.array([truth.cosine(g, groups) for g in gradients]))),
        centring=measured(lambda groups: float(np.sqrt(over(centre)(groups)))),
    )


def sure_errors(samples: int) -> float:
    """Return how many standard errors of so many samples are as sure as `SURE` of very many: a quantile of Student's t.

    This is the expansion in Abramowitz and Stegun, 26.7.5, which is good for 10 samples and more.
    """
    z, n = SURE, samples - 1
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


def _concordance(estimates: Floats, order: NDArray[np.int64]) -> Floats:
    """Return Kendall's τ of each state over the pairs in a sure order, (S,); NaN where there are none."""
    claimed = np.sign(estimates[:, :, None] - estimates[:, None]).mean(-1)
    pairs = np.abs(order).sum((1, 2))
    nothing = np.full(len(order), np.nan)
    return np.asarray(np.divide((claimed * order).sum((1, 2)), pairs, out=nothing, where=pairs > 0))


def _mean(numbers: Floats) -> float:
    """Return the mean of those that are there."""
    there = numbers[~np.isnan(numbers)]
    return float(there.mean()) if there.size else np.nan


def _members(groups: list[NDArray[np.int64]], chosen: Flags) -> NDArray[np.int64]:
    return np.concatenate([group for group, taken in zip(groups, chosen, strict=True) if taken])


def _jackknife(of: Callable[[Flags], float], groups: int) -> Measured:
    """Return a measure of all groups of states, with its error from leaving one out in turn."""
    value = of(np.ones(groups, bool))
    if groups < 2:
        return Measured(value, np.nan)
    without = np.array([of(np.arange(groups) != left_out) for left_out in range(groups)])
    return Measured(value, float(np.sqrt((groups - 1) * without.var())))
