"""Speed, measured: `make bench` runs every benchmark; `python -m benchmarks losses` runs one."""
