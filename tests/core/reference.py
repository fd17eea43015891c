"""The core functions once more, as double loops that are slow and obviously correct.

Written from the paper's equations, with no code of `dae`. Everything is built from scalar tensors, so that autograd
gives reference gradients as well.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Segments:
    """Random rows of steps with every kind of ending."""

    rewards: Tensor
    advantages: Tensor
    values: Tensor
    bootstrap: Tensor
    terminated: Tensor
    truncated: Tensor

    @property
    def ends(self) -> dict[str, Tensor]:
        return {"bootstrap": self.bootstrap, "terminated": self.terminated, "truncated": self.truncated}


def random_segments(
    rows: int, steps: int, *, terminated: float, truncated: float, dtype: torch.dtype, seed: int = 0
) -> Segments:
    """Draw rows where a step terminates or truncates with the given probabilities, perhaps both."""
    generator = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(rows, steps, generator=generator, dtype=torch.float64).to(dtype)

    def flags(probability: float) -> Tensor:
        return torch.rand(rows, steps, generator=generator, dtype=torch.float64) < probability

    return Segments(
        rewards=normal(),
        advantages=normal().requires_grad_(),
        values=normal().requires_grad_(),
        bootstrap=normal(),
        terminated=flags(terminated),
        truncated=flags(truncated),
    )


def segment_end(t: int, terminated: Tensor, truncated: Tensor) -> int:
    """The last step of the segment that step t of a row lies in."""
    while not (terminated[t] or truncated[t] or t == len(terminated) - 1):
        t += 1
    return t


def n_step_targets(
    rewards: Tensor, *, bootstrap: Tensor, terminated: Tensor, truncated: Tensor, gamma: float
) -> Tensor:
    rows, steps = rewards.shape
    targets = []
    for b in range(rows):
        for t in range(steps):
            end = segment_end(t, terminated[b], truncated[b])
            target = sum(
                (gamma ** (k - t) * rewards[b, k] for k in range(t, end + 1)), torch.zeros((), dtype=rewards.dtype)
            )
            if not terminated[b, end]:
                target = target + gamma ** (end + 1 - t) * bootstrap[b, end]
            targets.append(target)
    return torch.stack(targets).reshape(rows, steps)


def dae_loss(rewards: Tensor, advantages: Tensor, values: Tensor, **ends: Tensor | float) -> Tensor:
    return ((n_step_targets(rewards - advantages, **ends) - values) ** 2).mean()


def duel_loss(rewards: Tensor, advantages: Tensor, values: Tensor, **ends: Tensor | float) -> Tensor:
    return ((n_step_targets(rewards, **ends) - advantages - values) ** 2).mean()


def indirect_loss(rewards: Tensor, q_values: Tensor, values: Tensor, **ends: Tensor | float) -> Tensor:
    targets = n_step_targets(rewards, **ends)
    return ((targets - values) ** 2).mean() / 2 + ((targets - q_values) ** 2).mean() / 2


def gae(
    rewards: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    lam: float,
) -> Tensor:
    """Advantages as Σ_k (γλ)^{k-t} δ_k over the rest of the segment."""
    rows, steps = rewards.shape
    advantages = []
    for b in range(rows):
        for t in range(steps):
            end = segment_end(t, terminated[b], truncated[b])
            total = torch.zeros((), dtype=rewards.dtype)
            for k in range(t, end + 1):
                if k < end:
                    next_value = values[b, k + 1]
                elif terminated[b, k]:
                    next_value = torch.zeros((), dtype=rewards.dtype)
                else:
                    next_value = bootstrap[b, k]
                total = total + (gamma * lam) ** (k - t) * (rewards[b, k] + gamma * next_value - values[b, k])
            advantages.append(total)
    return torch.stack(advantages).reshape(rows, steps)


def monte_carlo_dae_loss(
    rewards: Tensor, advantages: Tensor, *, terminated: Tensor, truncated: Tensor, gamma: float
) -> Tensor:
    squares = []
    for b in range(len(rewards)):
        start = 0
        while start < rewards.shape[1]:
            end = segment_end(start, terminated[b], truncated[b])
            if terminated[b, end]:
                total = sum(
                    (gamma ** (t - start) * (rewards[b, t] - advantages[b, t]) for t in range(start, end + 1)),
                    torch.zeros((), dtype=rewards.dtype),
                )
                squares.append(total**2)
            start = end + 1
    return torch.stack(squares).mean()
