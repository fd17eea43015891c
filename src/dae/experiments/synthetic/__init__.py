"""The paper's first experiment: actor-critics on a chain whose true advantages are known (`dae synthetic`)."""
