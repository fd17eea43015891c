"""What the commands do: configured training, playing, and the paper's experiments."""
