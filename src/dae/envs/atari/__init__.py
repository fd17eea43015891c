"""Atari: the paper's 49 games. Its environments are not part of this version yet."""
