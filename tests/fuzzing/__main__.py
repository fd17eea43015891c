"""Fuzz for as long as you like: `python -m tests.fuzzing --minutes 60`, or repeat one case with --reader and --seed."""

import argparse
import sys
import time
from collections import Counter

import torch

from tests.fuzzing.judging import VERDICTS
from tests.fuzzing.readers import READERS
from tests.fuzzing.running import BATCH, Case, fuzzer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--reader", action="append", choices=list(READERS), help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, help="run one case of the reader, or all cases from this seed on")
    parser.add_argument("--cases", type=int, help="cases over all readers")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    readers = [READERS[name] for name in options.reader or READERS]
    one_case = options.seed is not None and options.cases is None and options.minutes is None
    most = len(readers) if one_case else options.cases if options.cases is not None else 10**12
    deadline = time.monotonic() + 60 * options.minutes if options.minutes is not None else float("inf")
    counts: Counter[tuple[str, str]] = Counter()
    slowest: dict[str, float] = {}
    failed: list[Case] = []
    first, told = options.seed or 0, time.monotonic()
    with fuzzer() as fuzz:
        while sum(counts.values()) < most and time.monotonic() < deadline:
            for reader in readers:
                size = min(BATCH, -(-(most - sum(counts.values())) // len(readers)), most - sum(counts.values()))
                for case in fuzz.run(reader, range(first, first + (1 if one_case else size))):
                    counts[reader.name, case.verdict] += 1
                    slowest[reader.name] = max(slowest.get(reader.name, 0.0), case.seconds)
                    if not case.held:
                        failed.append(case)
                    if one_case or not case.held:
                        print(case, flush=True)
                if time.monotonic() - told > 30:
                    told = time.monotonic()
                    print(f"{sum(counts.values()):,} cases, {len(failed):,} failed", flush=True)
            first += BATCH
    print(f"\n{'reader':16}" + "".join(f"{verdict:>13}" for verdict in VERDICTS) + f"{'slowest':>10}")
    for reader in readers:
        numbers = "".join(f"{counts[reader.name, verdict]:13,}" for verdict in VERDICTS)
        print(f"{reader.name:16}{numbers}{slowest.get(reader.name, 0.0):8.1f} s")
    print(f"{sum(counts.values()):,} mutated files, {len(failed):,} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
