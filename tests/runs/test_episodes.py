"""Episodes in parts of a run, against brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dae.runs import Episodes
from dae.runs.episodes import bin_of


def episodes_of(frames: list[int], scores: list[float]) -> Episodes:
    ended = np.array(frames, np.int64)
    return Episodes(np.array(scores), ended, np.arange(len(frames), dtype=float), ended)


@pytest.mark.parametrize(("bins", "budget"), [(100, 1000), (20, 99), (7, 500_000), (100, 33), (1, 10)])
def test_scores_in_parts_of_a_run_are_those_of_counting_one_by_one(bins: int, budget: int) -> None:
    rng = np.random.default_rng(bins)
    frames = sorted(rng.integers(1, budget * 12 // 10 + 2, 300).tolist())
    scores = rng.normal(size=300).tolist()
    parts: list[list[float]] = [[] for _ in range(bins)]
    for frame, score in zip(frames, scores, strict=True):
        part = next((k for k in range(bins) if frame <= Fraction((k + 1) * budget, bins)), bins - 1)
        parts[part].append(score)
    expected = [math.fsum(part) / len(part) if part else float("nan") for part in parts]
    np.testing.assert_allclose(episodes_of(frames, scores).mean_scores(bins, budget), expected)


def test_the_largest_numbers_of_frames_that_a_file_can_have() -> None:
    last = 2**53 - 1
    assert bin_of(np.array([1, last // 2, last]), 100, last).tolist() == [0, 49, 99]
