"""States of single environments: put into any place they go on exactly, and with seeds as the seeds say."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

import dae
from dae.envs import family_of
from dae.envs.atari import games
from dae.envs.atari.game import Game
from dae.envs.restoring import restorable
from dae.errors import UserError
from dae.serialization import BadData, from_bytes, to_bytes

BREAKOUT = "ALE/Breakout-v5"


class Parts(gym.Env[dict[str, Any], int]):
    """Shows several things at once, all of them drawn."""

    observation_space = gym.spaces.Dict({"near": gym.spaces.Box(0, 1, (3,)), "kind": gym.spaces.Discrete(4)})
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action: int) -> Any:
        return self._see(), float(action), self.np_random.random() < 0.1, False, {}

    def _see(self) -> dict[str, Any]:
        return {"near": self.np_random.random(3, np.float32), "kind": self.np_random.integers(4)}


class World(NamedTuple):
    """Environments of one kind."""

    env_id: str | type[gym.Env[Any, Any]]
    is_random: bool  # also within an episode
    options: dict[str, Any] = {}  # noqa: RUF012

    def __repr__(self) -> str:
        name = self.env_id if isinstance(self.env_id, str) else self.env_id.__name__
        return "-".join([name, *(f"{name}={value}" for name, value in self.options.items())])

    @contextlib.contextmanager
    def make(self, n_envs: int, seed: int) -> Iterator[Any]:
        """Make and reset some."""
        making = dae.make_vec_env if isinstance(self.env_id, str) else make_vec_env
        with contextlib.closing(making(self.env_id, n_envs, seed=seed, **self.options)) as env:
            env.reset()
            yield env


STICKY = {"sticky_action_prob": 0.25}
WORLDS = [
    *(
        World(f"MinAtar/{game}-v1", is_random=bool(options) or game in ("Asterix", "Seaquest"), options=options)
        for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
        for options in ({}, STICKY)
    ),
    World(BREAKOUT, is_random=False, options={"n_processes": 1}),
    World(BREAKOUT, is_random=True, options={"n_processes": 2, **STICKY}),
    World("CartPole-v1", is_random=False),
    World("MountainCar-v0", is_random=False),
    World("FrozenLake-v1", is_random=True),
    World(Parts, is_random=True),
]


Steps = list[tuple[Any, np.ndarray, np.ndarray]]  # observations, rewards, ends


def some_actions(env: Any, steps: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(env.action_space.n, size=(steps, env.num_envs))


def play(env: Any, actions: np.ndarray) -> Steps:
    return [env.step(each)[:3] for each in actions]


def content(values: Any, slots: list[int]) -> Any:
    """Return what some of the environments have of values, to be compared."""
    if isinstance(values, dict):
        return {name: content(part, slots) for name, part in values.items()}
    return values[slots].tobytes()


def of(steps: Steps, *slots: int) -> list[Any]:
    return [[content(values, list(slots)) for values in step] for step in steps]


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_a_state_goes_on_in_any_place_and_the_other_places_do_not_notice(world: World) -> None:
    with world.make(2, seed=0) as first, world.make(3, seed=1) as second, world.make(3, seed=1) as twin:
        last = play(first, some_actions(first, 30, seed=0))[-1][0]
        states = restorable(first).take_states([0, 1])
        actions = some_actions(first, 60, seed=1)
        expected = play(first, actions)
        has_long_episodes = any(name in repr(world) for name in ("Freeway", "MountainCar"))
        assert has_long_episodes or any(dones.any() for _, _, dones in expected)

        for env in (second, twin):
            before = play(env, some_actions(env, 5, seed=2))[-1][0]
        kept = content(before, [0, 1, 2])
        shown = restorable(second).put_states(states, [2, 0])
        assert content(shown, [0, 1]) == content(last, [0, 1])
        assert content(before, [0, 1, 2]) == kept  # who has the last observations may keep them
        assert restorable(second).take_states([2, 0]) == states
        others = some_actions(second, 60, seed=3)
        others[:, [2, 0]] = actions
        steps = play(second, others)
        assert of(steps, 2, 0) == of(expected, 0, 1)
        assert of(steps, 1) == of(play(twin, others), 1)


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_what_is_random_after_a_state_follows_from_the_seed(world: World) -> None:
    with world.make(3, seed=0) as env:
        play(env, some_actions(env, 30, seed=0))
        (state,) = restorable(env).take_states([1])
        actions = some_actions(env, 50, seed=1)[:, [0]].repeat(3, axis=1)

        def put_and_play(*seeds: int) -> Steps:
            restorable(env).put_states([state] * 3, [0, 1, 2], seeds)
            return play(env, actions)

        steps = put_and_play(5, 6, 5)
        assert of(steps, 0) == of(steps, 2)
        assert of(steps, 1) == of(put_and_play(9, 5, 6), 2)
        if world.is_random:
            assert of(steps, 0) != of(steps, 1)
        else:
            ends = [t for t, (_, _, dones) in enumerate(steps) if dones.any()]
            within = steps[: min(ends, default=len(steps))]
            assert len(within) > 3
            assert of(within, 0) == of(within, 1)


@pytest.mark.parametrize("world", [world for world in WORLDS if "sticky_action_prob" not in world.options], ids=repr)
def test_damaged_states_are_refused_in_one_line(world: World) -> None:
    with world.make(2, seed=0) as env:
        play(env, some_actions(env, 10, seed=0))
        (state,) = restorable(env).take_states([0])
        wrong = [
            b"",
            b"[]",
            b"{}",
            b"3",
            b'{"environment": 1}',
            b"[" * 10_000,
            state[:-1],
            state[: len(state) // 2],
            state * 2,
        ]
        if not state.startswith(b"{"):
            wrong.append(b"\xff" * len(state))
        else:
            stored = from_bytes(state)
            for name in stored:
                wrong += [to_bytes(stored | {name: value}) for value in (None, "1", [], [1], [None], {}, np.zeros(3))]
                wrong.append(to_bytes({other: value for other, value in stored.items() if other != name}))
        for damaged in wrong:
            with pytest.raises(ValueError, match=r"\A[^\n]+\Z"):
                restorable(env).put_states([damaged], [1])
        rng = np.random.default_rng(1)
        for _ in range(100):
            changed = bytearray(state)
            changed[rng.integers(len(state))] = rng.integers(256)
            with contextlib.suppress(ValueError):  # some changes lead to other states, and are no damage
                restorable(env).put_states([bytes(changed)], [1])
        restorable(env).put_states([state], [1])
        assert of(play(env, np.zeros((20, 2), int)), 1)


def test_states_of_other_games_are_refused() -> None:
    with breakout(1) as one, breakout(1, full_action_space=True) as other:
        play(one, np.full((9, 1), 2))
        with pytest.raises(BadData, match="goes another way when it is played again: use the ale-py and options"):
            other.put_states(one.take_states([0]), [0])
    with World("MinAtar/Asterix-v1", True).make(2, 0) as env:
        one, two = env.take_states([0, 1])
        with pytest.raises(BadData, match="not a state of asterix, which takes"):
            env.put_states([one + two[:1], two[1:]], [0, 1])


def test_environments_in_other_processes_cannot_be_restored() -> None:
    with pytest.raises(UserError, match="environments in a SubprocVecEnv cannot be restored one by one: it must be a"):
        restorable(SubprocVecEnv.__new__(SubprocVecEnv))  # without its processes, which take seconds


# Atari: games are played again once, and then kept in memory. --------------------------------------------------------


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The games that are played again."""
    played, replay = [], Game.replay

    def counting(self: Game, *where: Any) -> None:
        played.append(where)
        replay(self, *where)

    monkeypatch.setattr(Game, "replay", counting)
    return played


def breakout(n_envs: int, seed: int = 0, **options: Any) -> Any:
    return World(BREAKOUT, True, {"n_processes": 1, **STICKY, **options}).make(n_envs, seed)


def test_a_state_is_reached_from_an_earlier_one_of_the_same_course_of_a_game() -> None:
    """Two courses of one game, with the same beginning: neither may be continued as the other."""
    with breakout(1, seed=2) as source, breakout(2, seed=3) as fresh, breakout(2, seed=3) as used:
        play(source, some_actions(source, 20, seed=0))
        (start,) = source.take_states([0])
        states = [start]
        for course in (1, 2):
            source.put_states([start], [0])
            for part in range(3):
                play(source, some_actions(source, 15, seed=10 * course + part))
                states += source.take_states([0])
        for k, state in enumerate(states):
            used.put_states([state], [0], [5])  # in order, with other random numbers in between
            play(used, some_actions(used, 10, seed=k))
        for state in states:
            seen = [env.put_states([state], [1])[0] for env in (used, fresh)]
            np.testing.assert_array_equal(*seen)
            actions = some_actions(used, 25, seed=7)
            assert of(play(used, actions), 1) == of(play(fresh, actions), 1)
            fresh._parts[0]._games._clones.clear()


def test_a_game_is_played_again_once_wherever_it_goes(replays: list[Any]) -> None:
    with breakout(3, seed=2, sticky_action_prob=0.75) as env:
        play(env, some_actions(env, 50, seed=0))
        (state,) = env.take_states([0])
        actions = some_actions(env, 30, seed=1)
        expected = of(play(env, actions), 0)
        for slot in (0, 2, 0):
            env.reset()  # to other lives, and another action that is held
            env.put_states([state] * 3, [0, 1, 2], seeds=[1, 2, 3])
            env.put_states([state], [slot])
            assert env.take_states([slot]) == [state]
            there = actions.copy()
            there[:, slot] = actions[:, 0]
            assert of(play(env, there), slot) == expected
        assert len(replays) == 1


@pytest.mark.slow
def test_every_game_goes_on_from_memory_as_it_did(replays: list[Any]) -> None:
    """All of the paper: a game that is played again, in one emulator, and from memory in another."""
    protocol = family_of(BREAKOUT).protocol
    assert protocol is not None
    for game in protocol.games:
        with World(game, True, {"n_processes": 1, **STICKY}).make(2, seed=0) as env:
            play(env, some_actions(env, 150, seed=0))
            (state,) = env.take_states([0])
            actions = some_actions(env, 150, seed=1)[:, [0]].repeat(2, axis=1)
            expected = of(play(env, actions), 0)
            env.put_states([state, state], [0, 1])
            steps = play(env, actions)
            assert of(steps, 0) == of(steps, 1) == expected, game
    assert len(replays) == len(protocol.games)


def test_a_process_keeps_the_games_that_were_put_last(replays: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "_CLONES", 2)
    with breakout(3) as env:
        a, b, c = env.take_states([0, 1, 2])
        for state in (a, b, a, c, a):
            env.put_states([state], [0])
        assert len(replays) == 3
        env.put_states([b], [0])
        assert len(replays) == 4


def test_what_was_put_back_with_a_seed_is_not_taken_for_what_its_actions_lead_to() -> None:
    with breakout(2, max_episode_frames=200) as env, breakout(2, max_episode_frames=200) as fresh:
        env.put_states(env.take_states([1]), [0], seeds=[2**63])
        env.take_states([1])
        for take in (lambda: env.take_states([0]), env.take_snapshot):
            with pytest.raises(
                UserError, match="put back with a new seed does not follow from its actions, so its state"
            ):
                take()
        play(env, some_actions(env, 60, seed=0))  # the next game follows from the seed
        fresh.put_states(env.take_states([0]), [1])
        actions = some_actions(env, 60, seed=1)
        assert of(play(fresh, actions[:, ::-1]), 1) == of(play(env, actions), 0)


def test_a_snapshot_of_games_that_were_put_back_is_exact() -> None:
    with breakout(2) as env, breakout(2, seed=4) as fresh:
        env.put_states(fresh.take_states([1]), [0])
        play(env, some_actions(env, 20, seed=0))
        fresh.restore_snapshot(env.take_snapshot())
        actions = some_actions(env, 60, seed=1)
        assert of(play(fresh, actions), 0, 1) == of(play(env, actions), 0, 1)


def test_a_game_that_was_put_back_shows_its_picture() -> None:
    with breakout(1, render_mode="rgb_array") as env:
        play(env, some_actions(env, 20, seed=0))
        (state,), (picture,) = env.take_states([0]), env.get_images()
        for _ in range(2):
            play(env, some_actions(env, 20, seed=1))
            assert not np.array_equal(env.get_images()[0], picture)
            env.put_states([state], [0])
            np.testing.assert_array_equal(env.get_images()[0], picture)


def test_environments_that_are_drawn_can_be_restored_too() -> None:
    with contextlib.ExitStack() as closing:
        drawn, plain = (
            closing.enter_context(contextlib.closing(dae.make_vec_env("CartPole-v1", 1, seed, render_mode=mode)))
            for seed, mode in ((0, "rgb_array"), (1, None))
        )
        for env in (drawn, plain):
            env.reset()
        assert drawn.get_images()[0] is not None
        play(drawn, some_actions(drawn, 5, 0))
        for one, other in ((drawn, plain), (plain, drawn)):
            seen = restorable(other).put_states(restorable(one).take_states([0]), [0])
            actions = some_actions(one, 4, 1)
            np.testing.assert_array_equal(seen, restorable(other).put_states(restorable(other).take_states([0]), [0]))
            assert of(play(one, actions), 0) == of(play(other, actions), 0)
        assert drawn.get_images()[0] is not None


@pytest.mark.parametrize(
    ("env_id", "options"), [("CartPole-v1", {}), ("MinAtar/Freeway-v1", {"max_episode_steps": 30})]
)
def test_with_new_random_numbers_a_time_limit_begins_anew(env_id: str, options: dict[str, Any]) -> None:
    with contextlib.closing(dae.make_vec_env(env_id, 1, 0, **options)) as env:
        if env_id == "CartPole-v1":
            env.env_method("set_wrapper_attr", "_max_episode_steps", 10)
        env.reset()
        limit = 30 if options else 10
        still = np.zeros((limit, 1), np.int64) if options else np.arange(limit)[:, None] % 2
        play(env, still[: limit - 2])
        (state,) = restorable(env).take_states([0])
        for seeds, expected in ((None, 2), ([7], limit)):
            restorable(env).put_states([state], [0], seeds)
            ends = [step[2][0] for step in play(env, still)]
            assert ends.index(True) + 1 == expected
