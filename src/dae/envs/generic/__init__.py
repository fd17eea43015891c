"""Any environment of gymnasium, wrapped by Stable-Baselines3."""
