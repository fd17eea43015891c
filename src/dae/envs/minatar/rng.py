"""One random stream per environment: xoroshiro128++ (Blackman and Vigna), seeded by hashing (seed, index).

A game draws uniform numbers and nothing else, one for each draw of the `minatar` package and in the same order. So the
package can be fed from the same stream, which is how the tests compare the two step by step.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_streams(seeds: Sequence[int], indices: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the two words of each stream's state. A stream depends on its own seed (one may serve all) and index."""
    golden = np.uint64(_GOLDEN)
    key = _mix(_mix(np.array(seeds, np.uint64) + golden) ^ (indices.astype(np.uint64) * golden + golden))
    return _mix(key + golden), _mix(key + golden + golden)


@njit
def _rotate(x, bits):
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit
def uniform(s):
    """Draw a number in [0, 1) from the state's stream."""
    a, b = s.rng0, s.rng1
    result = _rotate(a + b, 17) + a
    b ^= a
    s.rng0 = _rotate(a, 49) ^ b ^ (b << np.uint64(21))
    s.rng1 = _rotate(b, 28)
    return (result >> np.uint64(11)) * 2.0**-53


@njit
def integer(s, n):
    """Draw an integer in [0, n) with a single uniform number."""
    return int(uniform(s) * n)
