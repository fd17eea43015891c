"""What goes wrong with a run and is the user's to solve."""


class RunProblem(Exception):
    """One line for the user: the value, the rule and the remedy."""

    exit_code = 2


class InUse(RunProblem):
    """Another process has the run's folder: try again later, as the exit code says to programs."""

    exit_code = 75
