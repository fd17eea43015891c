"""Atari: games of the Arcade Learning Environment, the paper's 49 and all others for one player."""
