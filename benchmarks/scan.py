"""Ways to compute discounted sums, forward and backward: the choice behind `core/scan.py`."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.timing import best_seconds
from dae.core import scan

GAMMA = 0.99
SHAPES = [(2, 128), (16, 128), (128, 128), (1024, 128), (4, 4096)]
LIMITS = [0, 2**14, 2**16, 2**18, 2**20]


def masked_matrix(x: Tensor, inside: Tensor) -> Tensor:
    """The product with M[t, k] = γ^(k−t) 1[k ≥ t] 1[same segment], one (T, T) matrix a row."""
    steps = x.shape[-1]
    segment = (~inside).cumsum(-1).roll(1, -1)
    segment[:, 0] = 0
    time = torch.arange(steps)
    discounts = (GAMMA ** (time[None, :] - time[:, None]).clamp(min=0).float()).triu()
    matrix = discounts * (segment[:, :, None] == segment[:, None, :])
    return (matrix * x[:, None, :]).sum(-1)


def halving(limit: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Ours, with another size at which the dense solve takes over (0: at a single step)."""

    def call(x: Tensor, inside: Tensor) -> Tensor:
        scan._DENSE_ELEMENTS = limit
        return scan.discounted_sums(x, inside, GAMMA)

    return call


def main() -> None:
    torch.set_num_threads(1)
    chosen = scan._DENSE_ELEMENTS
    methods = {"matrix": masked_matrix} | {
        f"2^{limit.bit_length() - 1}" if limit else "0": halving(limit) for limit in LIMITS
    }
    print("\ndiscounted sums forward + backward in ms, 1 thread: masked matrix, and halving down to a dense solve")
    print(f"of at most so many elements (core/scan.py uses 2^{chosen.bit_length() - 1})")
    print(f"{'B x T':>9}" + "".join(f"{name:>9}" for name in methods))
    for rows, steps in SHAPES:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(rows, steps, generator=generator).requires_grad_()
        inside = torch.rand(rows, steps, generator=generator) > 0.05
        small = {name: method for name, method in methods.items() if name != "matrix" or rows * steps**2 <= 2**24}
        calls = {
            name: lambda method=method, x=x, inside=inside: torch.autograd.grad(method(x, inside).sum(), x)
            for name, method in small.items()
        }
        seconds = best_seconds(calls)
        cells = [f"{seconds[name] * 1e3:9.3f}" if name in seconds else f"{'(memory)':>9}" for name in methods]
        print(f"{f'{rows}x{steps}':>9}" + "".join(cells), flush=True)
    scan._DENSE_ELEMENTS = chosen
