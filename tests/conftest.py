"""Settings shared by all tests."""

import pytest
import torch
from hypothesis import settings

# The networks of the tests are small: a second thread would cost more than it gives.
torch.set_num_threads(1)

# The suite tries the same examples every time, so that it fails for a change and not for a draw;
# `pytest --hypothesis-profile=explore` draws new ones. Timing on a shared machine is noise.
settings.register_profile("dae", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("dae")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Loading Numba's threads gives PyTorch as many again, and a fork of a process that uses them can hang."""
    torch.set_num_threads(1)
