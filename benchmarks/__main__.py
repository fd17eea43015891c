"""Run the benchmarks named on the command line, or all of them; `--quick` makes those small that can be."""

import inspect
import sys
from importlib import import_module

BENCHMARKS = [
    *("scan", "losses", "minatar", "agent", "rollout", "atari", "atari_agent", "atari_overlap"),
    *("checkpoints", "synthetic", "sweep", "report", "monte_carlo", "explorer"),
]

if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name != "--quick"] or BENCHMARKS
    unknown = set(chosen) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))} is not a benchmark; choose from {', '.join(BENCHMARKS)}")
    for name in chosen:
        main = import_module(f"benchmarks.{name}").main
        small = "--quick" in sys.argv and "quick" in inspect.signature(main).parameters
        main(quick=True) if small else main()
