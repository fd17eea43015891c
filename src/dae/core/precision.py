"""Half precision holds single numbers well, but not sums and squares of many."""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Return float16 and bfloat16 as float32, everything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
