"""The one recursion behind every return, y_t = x_t + w_t y_{t+1}, without a loop over time."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from dae.core.precision import at_least_float32

# The recursion is solved as a dense matrix once that has at most this many elements (1 MB in float32). Measured from
# 2x128 to 1024x128 and 4x4096, see docs/performance.md: a smaller limit costs launches, a larger one exceeds the cache.
_DENSE_ELEMENTS = 2**18


def discounted_sums(x: Tensor, inside: Tensor, discount: float) -> Tensor:
    """Return y_t = x_t + discount · y_{t+1} where `inside` says that step t + 1 belongs to the same segment, else x_t.

    All are (B, T); the last column of `inside` is not read. Half precision is accumulated in float32.
    """
    accumulator = at_least_float32(x)
    sums = _solve(accumulator, inside.to(accumulator.dtype) * discount)
    return sums if sums.dtype == x.dtype else sums.to(x.dtype)


def _solve(x: Tensor, weights: Tensor) -> Tensor:
    """Solve y_t = x_t + w_t y_{t+1} along the last axis.

    As a matrix equation this is (I − superdiagonal(w)) y = x. Long rows are halved until the matrix is small: putting
    every odd step into the even one before it leaves the same recursion on half as many steps,

        y_{2i} = (x_{2i} + w_{2i} x_{2i+1}) + w_{2i} w_{2i+1} y_{2i+2},

    so that time and memory grow as B T.
    """
    steps = x.shape[-1]
    if steps == 1:
        return x
    if x.numel() * steps <= _DENSE_ELEMENTS:
        matrix = torch.diag_embed(-weights[..., :-1], offset=1)
        y: Tensor = torch.linalg.solve_triangular(matrix, x.unsqueeze(-1), upper=True, unitriangular=True)
        return y.squeeze(-1)
    if steps % 2:
        return _solve(pad(x, (0, 1)), pad(weights, (0, 1)))[..., :-1]
    x_even, x_odd = x[..., ::2], x[..., 1::2]
    w_even, w_odd = weights[..., ::2], weights[..., 1::2]
    even = _solve(torch.addcmul(x_even, w_even, x_odd), w_even * w_odd)
    odd = torch.addcmul(x_odd, w_odd, pad(even[..., 1:], (0, 1)))
    return torch.stack((even, odd), -1).flatten(-2)
