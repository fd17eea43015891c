"""Search for hyperparameters with Optuna (`dae tune`)."""
