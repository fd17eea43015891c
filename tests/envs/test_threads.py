"""Games and networks share OpenMP: making games changes nothing for the networks."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import numpy as np, torch, dae
for n_threads in (1, 2):
    env = dae.make_vec_env("MinAtar/Breakout-v1", 8, n_threads=n_threads)
    env.reset()
    env.step(np.zeros(8, int))
    print(torch.get_num_threads())
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_games_leave_the_number_of_threads_as_it_is(threads: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=os.environ | {"OMP_NUM_THREADS": threads}, capture_output=True, check=True
    )
    assert told.stdout.decode().split() == [threads, threads]
