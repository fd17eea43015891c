"""The benchmarks are programs that start; what they measure is not for tests to judge."""

from importlib import import_module

import pytest
from benchmarks.__main__ import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_can_be_started(name: str) -> None:
    assert callable(import_module(f"benchmarks.{name}").main)
