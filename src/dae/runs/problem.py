"""What goes wrong with a run and is the user's to solve."""


class RunProblem(Exception):
    """One line for the user: the value, the rule and the remedy."""
