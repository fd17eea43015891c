"""The credit explorer's side that plays: episodes of a trained agent, and what its decisions were worth (`dae explore`)."""
