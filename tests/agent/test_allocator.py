"""Freed memory is kept: a step that allocates what the last one freed meets no page faults."""

import os
import subprocess
import sys

import pytest

CODE = """
import resource, torch
from dae.agent.allocator import keep_freed_memory
kept = keep_freed_memory()
def step():
    blocks = [torch.empty(n * 1_000_000).fill_(1.0) for n in (1, 3, 2)]
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    step()
print(kept, (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


def faults(**environment: str) -> tuple[bool, float]:
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    kept, count = result.stdout.split()
    return kept == "True", float(count)


def test_a_step_meets_no_page_faults() -> None:
    kept, count = faults()
    if not kept:
        pytest.skip("this C library cannot be told")
    assert count < 20
    left_alone, count_without = faults(MALLOC_MMAP_THRESHOLD_="131072")
    assert not left_alone, "who has set the thresholds keeps them"
    assert count_without > 1000
