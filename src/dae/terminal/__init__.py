"""Tools of the command line: options, progress, signals, and lines for the user."""
