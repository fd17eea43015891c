"""`model.advantages` of one observation or several, of every kind."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import dae
from tests.agent.worlds import Spaces

OPTIONS = spaces.MultiDiscrete([3, 2])
MASK = np.array([True, False, True, True, True])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (4,)),
        spaces.Discrete(3),
        spaces.Dict({"near": spaces.Box(-1, 1, (3,)), "kind": spaces.Discrete(4)}),
        spaces.Box(0, 255, (36, 36, 3), np.uint8),
    ],
    ids=lambda space: type(space).__name__,
)
@pytest.mark.parametrize("mask", [None, MASK], ids=["free", "masked"])
def test_credit_of_a_single_observation_is_a_row_of_that_of_a_batch(space: spaces.Space[Any], mask: Any) -> None:
    kind = {spaces.Dict: "MultiInputPolicy"}.get(
        type(space), "CnnPolicy" if len(space.shape or ()) == 3 else "MlpPolicy"
    )
    model = dae.PPO(kind, Spaces(space, OPTIONS), seed=0)
    space.seed(0)
    states = [space.sample() for _ in range(3)]
    batch = (
        {key: np.stack([state[key] for state in states]) for key in space}
        if isinstance(space, spaces.Dict)
        else np.stack(states)
    )
    of_all, of_one = model.advantages(batch, mask), model.advantages(states[0], mask)
    assert [part.shape for part in of_one] == [(5,), (), (5,)]
    for one, rows in zip(of_one, of_all, strict=True):
        np.testing.assert_allclose(one, rows[0], rtol=1e-5, atol=1e-6)
    assert float(of_one.values) != float(of_all.values[1])


def test_what_a_reset_returns_is_not_an_observation() -> None:
    env = gym.make("CartPole-v1")
    model = dae.PPO("MlpPolicy", env)
    for ask in (model.predict, model.advantages, lambda seen: model.predict(seen, action_masks=[True, True])):
        with pytest.raises(ValueError, match="tuple"):
            ask(env.reset(seed=0))
