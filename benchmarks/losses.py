"""`dae_loss`, forward and backward, against the loop over segments that one would write first."""

import torch
from torch import Tensor

from benchmarks.timing import best_seconds
from dae import dae_loss

GAMMA = 0.99
SHAPES = [(2, 128), (16, 128), (128, 128), (1024, 128), (4, 4096)]
EPISODE_LENGTHS = [4, 20, None]


def segment_loop(
    rewards: Tensor,
    advantages: Tensor,
    values: Tensor,
    *,
    bootstrap: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    discounts: Tensor,
) -> Tensor:
    """Handle one segment after the other, each as a product with a triangular matrix of discounts made in advance."""
    ends = terminated | truncated
    ends[:, -1] = True
    total = torch.zeros(())
    for b in range(len(rewards)):
        start = 0
        for end in ends[b].nonzero().flatten().tolist():
            segment, length = slice(start, end + 1), end + 1 - start
            targets = discounts[:length, :length] @ (rewards[b, segment] - advantages[b, segment])
            if not terminated[b, end]:
                targets = targets + GAMMA * discounts[:length, length - 1] * bootstrap[b, end]
            total = total + (targets - values[b, segment]).square().sum()
            start = end + 1
    return total / rewards.numel()


def measure(rows: int, steps: int, episode_length: int | None) -> str:
    """Return one line of the table."""
    generator = torch.Generator().manual_seed(0)
    rewards, bootstrap, advantages, values = torch.randn(4, rows, steps, generator=generator)
    advantages.requires_grad_()
    values.requires_grad_()
    terminated = torch.rand(rows, steps, generator=generator) < (1 / episode_length if episode_length else 0)
    ends = {"bootstrap": bootstrap, "terminated": terminated, "truncated": torch.zeros_like(terminated)}
    powers = torch.arange(steps, dtype=torch.float32)
    discounts = (GAMMA ** (powers[None, :] - powers[:, None]).clamp(min=0)).triu()

    def ours() -> tuple[Tensor, ...]:
        return torch.autograd.grad(dae_loss(rewards, advantages, values, **ends, gamma=GAMMA), (advantages, values))

    def loop() -> tuple[Tensor, ...]:
        return torch.autograd.grad(
            segment_loop(rewards, advantages, values, **ends, discounts=discounts), (advantages, values)
        )

    for mine, theirs in zip(ours(), loop(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    seconds = best_seconds({"ours": ours, "loop": loop})
    length = str(episode_length) if episode_length else "none ends"
    return (
        f"{f'{rows}x{steps}':>9} {length:>15} {seconds['ours'] * 1e3:10.3f} {seconds['loop'] * 1e3:10.3f}"
        f" {seconds['loop'] / seconds['ours']:9.1f}"
    )


def main() -> None:
    for threads in (1, 2):
        torch.set_num_threads(threads)
        print(f"\ndae_loss forward + backward, {threads} thread{'s' if threads > 1 else ''}, float32")
        print(f"{'B x T':>9} {'episode length':>15} {'ours (ms)':>10} {'loop (ms)':>10} {'speed-up':>9}")
        for rows, steps in SHAPES:
            for episode_length in EPISODE_LENGTHS:
                print(measure(rows, steps, episode_length), flush=True)
