"""`dae explore`: episodes of a trained agent, and what other actions would have led to, for the credit explorer."""
