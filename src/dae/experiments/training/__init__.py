"""One training run, from its settings to its pictures (`dae train`)."""
