"""Work that accompanies a run, such as a study of its agents."""

from dae.agent import PPO


class Enough(Exception):
    """Raised by a companion that has all it needs: the run is stopped in order, and can be continued."""


class Companion:
    """What is told of every step of a run; this one does nothing.

    What it writes in a call is on the disk before a checkpoint of that moment is: a run that is continued repeats
    calls, but leaves none out.
    """

    ends_at: int | None = None  # the frames at which it will have enough, if it stops the run before its end
    continue_with: str | None = None  # the command that continues a run with this companion; None: `dae train`

    def before_rollout(self, agent: PPO) -> None:
        """Look at the agent, and at its environments before the first step."""

    def after_step(self, agent: PPO, steps: int) -> None:
        """Look at the environments after so many steps of the rollout."""

    def after_rollout(self, agent: PPO) -> None:
        """Look at the rollout, before the agent learns from it."""
