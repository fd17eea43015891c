"""`dae play`: how well a trained agent plays, and what it thinks while it does."""
