"""What a study keeps of its training: the agent at the start of each iteration, and the states that were drawn."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dae.agent import PPO
from dae.agent.saving import LAST_SEEN
from dae.envs.restoring import restorable
from dae.errors import UserError
from dae.experiments.arrays import Damaged, read_arrays, write_arrays
from dae.experiments.training.companion import Companion, Enough
from dae.experiments.variation.config import StudyPlan
from dae.experiments.wrappers import innermost
from dae.files import read_file, write_atomically

_LARGEST_AGENT = 2**33  # bytes


@dataclass(frozen=True)
class Places:
    """Where in a training the states of a study are met: (S,) each, in the order in which they come."""

    iterations: NDArray[np.int64]
    steps: NDArray[np.int64]  # of the rollout, before the state
    actors: NDArray[np.int64]

    @staticmethod
    def drawn(number: int, iterations: int, steps: int, actors: int, seed: int) -> "Places":
        """Draw places uniformly, none of them twice."""
        shape = (iterations, steps, actors)
        rng = np.random.default_rng([seed, iterations, steps, actors])
        chosen = np.sort(rng.choice(int(np.prod(shape)), number, replace=False, shuffle=False))
        return Places(*np.unravel_index(chosen, shape))

    def of(self, iteration: int) -> "Places":
        """Return those within an iteration."""
        within = self.iterations == iteration
        return Places(self.iterations[within], self.steps[within], self.actors[within])

    def actors_at(self, step: int) -> list[int]:
        """Return the actors at a step of any iteration."""
        return [int(actor) for actor in self.actors[self.steps == step]]


class Kept:
    """The files of agents and states in a study's folder, by iteration."""

    def __init__(self, folder: Path, iterations: int) -> None:
        self._folder, self.iterations = folder, iterations

    def agent(self, iteration: int) -> Path:
        return self._folder / "agents" / f"{iteration:04d}.zip"

    def states(self, iteration: int) -> Path:
        return self._folder / "states" / f"{iteration:04d}.npz"

    @property
    def first_missing(self) -> int:
        """The first iteration of which a file is missing; the number of iterations if all are there."""
        for iteration in range(self.iterations):
            if not (self.agent(iteration).exists() and self.states(iteration).exists()):
                return iteration
        return self.iterations

    def save_agent(self, iteration: int, agent: PPO) -> None:
        saved = io.BytesIO()
        agent.save(saved, exclude=LAST_SEEN)
        write_atomically(self.agent(iteration), saved.getvalue())

    def load_agent(self, iteration: int) -> PPO:
        """Return the agent at the start of an iteration."""
        path = self.agent(iteration)
        try:
            content = read_file(path, _LARGEST_AGENT)
            return PPO.load(io.BytesIO(content), device="cpu")
        except OSError as error:
            raise _cannot_be_used(path, error.strerror) from error
        except UserError as error:
            raise _cannot_be_used(path, error) from error

    def save_states(self, iteration: int, places: Places, states: list[bytes]) -> None:
        arrays = {
            **_described(iteration, places),
            "sizes": np.array([len(state) for state in states], np.int64),
            "content": np.frombuffer(b"".join(states), np.uint8),
        }
        write_arrays(self.states(iteration), arrays)

    def load_states(self, places: Places) -> list[bytes]:
        """Return the states that were met at places."""
        return [state for iteration in range(self.iterations) for state in self._load(iteration, places.of(iteration))]

    def _load(self, iteration: int, places: Places) -> list[bytes]:
        path = self.states(iteration)
        try:
            arrays = read_arrays(path)
            sizes, content = arrays["sizes"], arrays["content"].tobytes()
            expected = _described(iteration, places)
            if any(not np.array_equal(arrays[name], array) for name, array in expected.items()):
                raise Damaged("it holds other states")
            if sizes.shape != places.steps.shape or sizes.sum() != len(content):
                raise Damaged("its sizes do not fit")
        except (Damaged, KeyError) as problem:
            raise _cannot_be_used(path, problem) from problem
        ends = np.cumsum(sizes).tolist()
        return [content[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _described(iteration: int, places: Places) -> dict[str, NDArray[Any]]:
    return {"iteration": np.array(iteration), "steps": places.steps, "actors": places.actors}


def _cannot_be_used(path: Path, reason: object) -> UserError:
    return UserError(
        f"{path} cannot be used ({reason}), and its training has passed it: restore it from a backup, or move "
        f"{path.parent.parent} away to start from scratch"
    )


class Keeper(Companion):
    """Keeps what a study needs of a training, and stops it when it has everything."""

    continue_with = "the same command"

    def __init__(self, kept: Kept, places: Places, plan: StudyPlan) -> None:
        self._kept, self._places, self._steps_per_iteration = kept, places, plan.steps_per_iteration
        self.ends_at = kept.iterations * plan.frames_per_iteration
        self._iteration, self._here, self._states = 0, places.of(0), list[bytes]()

    def before_rollout(self, agent: PPO) -> None:
        self._iteration = agent.num_timesteps // self._steps_per_iteration
        self._here, self._states = self._places.of(self._iteration), []
        self._kept.save_agent(self._iteration, agent)
        self.after_step(agent, 0)

    def after_step(self, agent: PPO, steps: int) -> None:
        actors = self._here.actors_at(steps)
        if actors:
            assert agent.env is not None
            self._states += restorable(innermost(agent.env)).take_states(actors)

    def after_rollout(self, agent: PPO) -> None:
        self._kept.save_states(self._iteration, self._here, self._states)
        if self._iteration + 1 == self._kept.iterations:
            raise Enough
