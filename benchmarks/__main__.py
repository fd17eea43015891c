"""Run the benchmarks named on the command line, or all of them."""

import sys
from importlib import import_module

BENCHMARKS = ["scan", "losses", "minatar", "agent", "rollout", "checkpoints", "synthetic", "sweep", "report"]

if __name__ == "__main__":
    chosen = sys.argv[1:] or BENCHMARKS
    unknown = set(chosen) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))} is not a benchmark; choose from {', '.join(BENCHMARKS)}")
    for name in chosen:
        import_module(f"benchmarks.{name}").main()
