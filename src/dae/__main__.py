"""`python -m dae` is the `dae` command, for launchers such as torchrun."""

from dae.cli import main

raise SystemExit(main())
