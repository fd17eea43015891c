"""MinAtar with gymnasium's interfaces: a single environment, and a vector of environments."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from dae.envs.minatar.batch import Flags, MinAtarBatch, States

RENDER_MODES = ["rgb_array"]
FRAMES_PER_SECOND = 15


def _require_render_mode(render_mode: str | None) -> None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode={render_mode!r} is not known; choose None or {', '.join(RENDER_MODES)}")


class MinAtarVectorEnv(VectorEnv[Flags, NDArray[np.int64], NDArray[Any]]):
    """N environments of one game; an episode that ends is followed by the next in the same step.

    Options as for `MinAtarBatch`. Where an episode ended, `infos` hold its `final_obs` and `final_info`, as gymnasium's
    own vector environments do in this mode; `final_info` has `episode` with the return `r` and the length `l`.
    """

    metadata = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "render_fps": FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, game: str, num_envs: int = 1, *, render_mode: str | None = None, **options: Any) -> None:
        _require_render_mode(render_mode)
        self.render_mode = render_mode
        self.batch = MinAtarBatch(game, num_envs, **options)
        self.num_envs = num_envs
        self.single_observation_space = self.batch.observation_space
        self.single_action_space = self.batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Flags, dict[str, Any]]:
        """Start new episodes, in all environments or where `options["reset_mask"]` is True."""
        return self.batch.reset(seed, mask=(options or {}).get("reset_mask")), {}

    def step(self, actions: NDArray[np.int64]) -> tuple[Flags, NDArray[np.float32], Flags, Flags, dict[str, Any]]:
        step = self.batch.step(actions)
        infos: dict[str, Any] = {}
        if step.ended.size:
            ended = np.zeros(self.num_envs, bool)
            ended[step.ended] = True
            final_obs = np.full(self.num_envs, None, object)
            final_obs[step.ended] = list(step.final_observations)
            returns, lengths = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.int32)
            returns[step.ended], lengths[step.ended] = step.episode_returns, step.episode_lengths
            episode = {"r": returns, "_r": ended, "l": lengths, "_l": ended}
            infos = {
                "final_obs": final_obs,
                "_final_obs": ended,
                "final_info": {"episode": episode, "_episode": ended},
                "_final_info": ended,
            }
        return step.observations, step.rewards, step.terminated, step.truncated, infos

    def observe(self) -> Flags:
        """Return the current observations."""
        return self.batch.observe()

    def get_state(self) -> States:
        """Return an exact snapshot of all environments; see `MinAtarBatch.get_state`."""
        return self.batch.get_state()

    def set_state(self, state: States, indices: Any = None) -> None:
        """Restore a snapshot, into all environments or into those of `indices`."""
        self.batch.set_state(state, indices)

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return a picture of every environment."""
        return tuple(self.batch.render()) if self.render_mode else None


class MinAtarEnv(gym.Env[Flags, np.int64]):
    """One environment. Seeded alike, it plays the same game as the first of a vector."""

    metadata = {"render_modes": RENDER_MODES, "render_fps": FRAMES_PER_SECOND}  # noqa: RUF012

    def __init__(self, game: str, *, render_mode: str | None = None, **options: Any) -> None:
        _require_render_mode(render_mode)
        self.render_mode = render_mode
        self.batch = MinAtarBatch(game, 1, **options)
        self.observation_space = self.batch.observation_space
        self.action_space = self.batch.action_space
        self._between_episodes = False
        self._shown: Flags | None = None  # what was returned last: after the end of an episode, its last state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Flags, dict[str, Any]]:
        super().reset(seed=seed)
        begun = self._between_episodes and seed is None  # the batch starts the next episode by itself
        observation = self.batch.observe() if begun else self.batch.reset(seed)
        self._between_episodes = False
        self._shown = observation
        return observation[0], {}

    def step(self, action: Any) -> tuple[Flags, float, bool, bool, dict[str, Any]]:
        if self._between_episodes:
            raise ResetNeeded("the episode is over: call reset() before the next step")
        step = self.batch.step(np.asarray(action).reshape(1))
        self._between_episodes = bool(step.ended.size)
        self._shown = step.final_observations if self._between_episodes else step.observations
        return self._shown[0], float(step.rewards[0]), bool(step.terminated[0]), bool(step.truncated[0]), {}

    def get_state(self) -> States:
        """Return an exact snapshot; see `MinAtarBatch.get_state`. After an episode's end it is the next one's start."""
        return self.batch.get_state()

    def set_state(self, state: States) -> None:
        """Restore a snapshot and go on from there."""
        self.batch.set_state(state)
        self._between_episodes = False
        self._shown = self.batch.observe()

    def render(self) -> NDArray[np.uint8] | None:
        """Return a picture of the last observation, (240, 240, 3)."""
        return self.batch.render(self._shown)[0] if self.render_mode else None
