"""How good an agent's advantages are, compared with Monte-Carlo truth (`dae quality`)."""
