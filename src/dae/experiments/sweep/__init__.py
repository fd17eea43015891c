"""Many runs as one piece of work: a grid of settings, and who trains them (`dae sweep`)."""
