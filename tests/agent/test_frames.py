"""Stacks of frames are stored as single frames, and read as what they were: against storing them whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors, save as save_tensors
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)
from torch.utils._python_dispatch import TorchDispatchMode

import dae
from dae.agent import Batch, Rollout
from dae.agent.frames import FrameStore, stack_size
from dae.agent.policy import Acted
from dae.errors import InvalidValue
from dae.experiments.config import parse
from dae.experiments.training import building
from dae.experiments.training.state import _restore_rollout, _take_rollout
from tests.agent.worlds import Images, Spaces

CPU = torch.device("cpu")
STARTS = ("zeros", "repeated", "all new", "goes on", "noise")


def play(
    rng: np.random.Generator, n_envs: int, n_steps: int, n_stack: int, frame: tuple[int, ...], start: str, rate: float
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
    """Yield what actors see, (n_envs, n_stack, *frame), and which episodes end after it, in one array for all steps."""

    def draw(*shape: int) -> NDArray[np.uint8]:
        return rng.integers(0, 3, (*shape, *frame), np.uint8)  # small numbers: frames are often equal by chance

    seen, begins = np.zeros((n_envs, n_stack, *frame), np.uint8), np.ones(n_envs, bool)
    for _ in range(n_steps):
        seen[:, :-1] = seen[:, 1:]
        seen[:, -1] = draw(n_envs)
        for b in np.flatnonzero(begins):
            if start == "zeros":
                seen[b, :-1] = 0
            elif start == "repeated":
                seen[b] = seen[b, -1]
            elif start == "all new":
                seen[b] = draw(n_stack)
        if start == "noise":
            seen[:] = draw(n_envs, n_stack)
        begins = rng.random(n_envs) < rate
        yield seen, begins


def fill(rollouts: list[Rollout], plays: Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_]]]) -> None:
    """Store the same in all rollouts; rewards count the frames."""
    for rollout in rollouts:
        rollout.reset()
    n_envs, space = rollouts[0].n_envs, rollouts[0]._observation_space
    for t, (seen, ends) in enumerate(plays):
        zeros, table = torch.zeros(n_envs), torch.zeros(n_envs, 3)
        acted = Acted(torch.zeros(n_envs, dtype=torch.long), zeros, zeros, table, None)
        shown = torch.from_numpy(seen.reshape(n_envs, *space.shape).astype(space.dtype, copy=False))
        for rollout in rollouts:
            rollout.add_observations(shown)
            rollout.add(np.arange(n_envs) * 100 + t, ends, np.zeros(n_envs, bool), acted)
    assert all(rollout.full for rollout in rollouts)


def read(rollout: Rollout, batch_size: int, row_length: int | None) -> Iterator[Batch]:
    for batching in ("steps", "trajectories"):
        yield from rollout.minibatches(batching, batch_size, row_length)
    yield from rollout.segments(batch_size)


def make(
    n_envs: int, n_steps: int, n_stack: int, frame: tuple[int, ...] = (1, 3, 5), dtype: Any = np.uint8
) -> tuple[Rollout, Rollout]:
    """Return two rollouts for the same observations: one of single frames and one of whole observations."""
    space = spaces.Box(0, 1 if dtype == np.bool_ else 255, (n_stack * frame[0], *frame[1:]), dtype)
    single, whole = (Rollout(n_steps, n_envs, space, spaces.Discrete(3), CPU, n_stack=n) for n in (n_stack, 1))
    return single, whole


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(2, 4),
    st.sampled_from([(1, 3, 5), (3, 2, 4), (1, 4, 4), (1,)]),
    st.sampled_from([np.uint8, np.bool_, np.int16, np.float32]),
    st.sampled_from(STARTS),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([None, 1, 2, 3]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_read_is_what_was_stored(
    n_envs: int,
    n_steps: int,
    n_stack: int,
    frame: tuple[int, ...],
    dtype: Any,
    start: str,
    rate: float,
    row_length: int | None,
    seed: int,
) -> None:
    rollouts = make(n_envs, n_steps, n_stack, frame, dtype)
    assert isinstance(rollouts[0].observations, FrameStore)
    assert isinstance(rollouts[1].observations, torch.Tensor)
    rng = np.random.default_rng(seed)
    for _ in range(2):  # rollouts in a row: nothing of the one before may be left
        fill(list(rollouts), play(rng, n_envs, n_steps, n_stack, frame, start, rate))
        batches = []
        for rollout in rollouts:
            set_random_seed(0)
            batches.append(list(read(rollout, 5, row_length)))
        for single, whole in zip(*batches, strict=True):
            assert torch.equal(single.rewards, whole.rewards)
            assert single.observations.dtype == whole.observations.dtype
            assert torch.equal(single.observations, whole.observations)


def test_equal_numbers_that_differ_in_their_bits_stay_different() -> None:
    single, whole = make(1, 2, 2, (1, 1, 2), np.float32)
    for rollout in (single, whole):
        rollout.reset()
    seen = torch.tensor([[[-0.0, torch.nan], [0.0, 1.0]], [[-0.0, 1.0], [-0.0, -0.0]]]).reshape(2, 1, 2, 1, 2)
    for t in range(2):
        single.observations.store(t, seen[t])
    read_back = single.observations.stacked(single.observations.index[0])
    assert torch.equal(read_back.view(torch.int32), seen[:, 0].view(torch.int32))


@pytest.mark.parametrize(
    ("start", "rate", "frames"),
    [
        ("zeros", 0.5, 1 + 3 * 8),  # the frame of zeros, and one a step
        ("repeated", 0.5, 1 + 3 * 8),
        ("repeated", 1.0, 1 + 3 * 8),
        ("goes on", 1.0, 1 + 3 * 8),
        ("all new", 0.0, 1 + 3 * (8 + 3)),  # the first stacks are stored whole
        ("all new", 1.0, 1 + 3 * 8 * 4),
    ],
)
def test_a_frame_is_stored_once(start: str, rate: float, frames: int) -> None:
    rollout, _ = make(3, 8, 4, (1, 8, 8))  # large enough for no two to be equal by chance
    before = rollout.nbytes
    for _ in range(2):
        fill([rollout], play(np.random.default_rng(0), 3, 8, 4, (1, 8, 8), start, rate))
        assert len(rollout.tensors["frames"]) == frames
    grown = frames > 1 + 3 * (8 + 3)
    assert (rollout.nbytes > before) == grown
    assert rollout.nbytes <= before + grown * 64 * 3 * 8 * 4


def test_a_rollout_of_the_papers_size_in_atari_is_small() -> None:
    seen = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    rollout = Rollout(128, 1024, seen, spaces.Discrete(18), CPU, has_head=True, n_stack=4)
    assert rollout.rewards.is_meta, "nothing is allocated"
    assert rollout.nbytes <= 1.2e9
    assert len(rollout.tensors["frames"]) == 1


@pytest.mark.parametrize("row_length", [None, 1, 5])
def test_reading_does_not_copy_what_is_stored(row_length: int | None) -> None:
    rollout, _ = make(64, 8, 4, (1, 8, 8))
    fill([rollout], play(np.random.default_rng(0), 64, 8, 4, (1, 8, 8), "zeros", 0.1))
    with Largest() as made:
        for _ in read(rollout, 8, row_length):
            pass
    assert 8 * 4 * 64 <= made.nbytes < rollout.nbytes / 4


class Largest(TorchDispatchMode):
    """Notes the largest tensor that is made; views of others do not count."""

    nbytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in args if isinstance(x, torch.Tensor)}
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in given:
            self.nbytes = max(self.nbytes, result.nbytes)
        return result


def carried_over(tensors: dict[str, torch.Tensor]) -> Rollout:
    rollout, _ = make(3, 4, 4)
    rollout.restore(load_tensors(save_tensors(tensors)))
    return rollout


@pytest.mark.parametrize("start", STARTS)
def test_a_rollout_can_be_carried_over(start: str) -> None:
    first, whole = make(3, 4, 4)
    fill([first, whole], play(np.random.default_rng(0), 3, 4, 4, (1, 3, 5), start, 0.5))
    second = carried_over(first.tensors)
    assert second.full
    assert all(torch.equal(tensor, second.tensors[name]) for name, tensor in first.tensors.items())
    set_random_seed(0)
    batches = list(read(second, 5, None))
    set_random_seed(0)
    for mine, expected in zip(batches, read(whole, 5, None), strict=True):
        assert torch.equal(mine.observations, expected.observations)
    fill([second, whole], play(np.random.default_rng(1), 3, 4, 4, (1, 3, 5), start, 0.5))  # and goes on
    stacks = second.observations.stacked(second.observations.index.flatten(0, 1))
    assert torch.equal(stacks, whole.observations.flatten(0, 1))


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("stacks", lambda x: x.index_fill(1, torch.tensor(2), -1), "its stacks are made of other frames than the"),
        ("stacks", lambda x: x.index_fill(1, torch.tensor(2), 13), "its stacks are made of other frames than the 13"),
        ("stacks", lambda x: x.int(), "a rollout of another size"),
        ("stacks", lambda x: x[:, :, :3], "a rollout of another size"),
        ("stacks", lambda x: x[:0], "a rollout of another size"),
        ("stacks", None, "a rollout of another size"),
        ("frames", lambda x: x[:-1], "its stacks are made of other frames than the 12"),
        ("frames", lambda x: x[:0], "its stacks are made of other frames than the 0"),
        ("frames", lambda x: x.repeat(4, 1, 1, 1), "a rollout of another size"),
        ("frames", lambda x: x.bool(), "a rollout of another size"),
        ("frames", lambda x: x[..., :4], "a rollout of another size"),
        ("frames", lambda x: x[0, 0, 0, 0], "a rollout of another size"),
        ("frames", None, "a rollout of another size"),
        ("rewards", lambda x: x[:2], "a rollout of another size"),
        ("rewards", None, "a rollout of another size"),
    ],
)
def test_what_no_rollout_holds_is_refused(name: str, change: Any, problem: str) -> None:
    rollout, whole = make(3, 4, 4)
    fill([rollout, whole], play(np.random.default_rng(0), 3, 4, 4, (1, 3, 5), "zeros", 0.5))
    tensors = rollout.tensors
    assert len(tensors["frames"]) == 13
    changed = {key: tensor for key, tensor in tensors.items() if key != name}
    if change is not None:
        changed[name] = change(tensors[name]).contiguous()
    with pytest.raises(InvalidValue, match=problem):
        carried_over(changed)
    with pytest.raises(InvalidValue, match="a rollout of another size"):
        carried_over(whole.tensors)
    with pytest.raises(InvalidValue, match="a rollout of another size"):
        whole.restore(tensors)


class Turned(Images):
    """The same pictures with channels last, as most environments have them."""

    observation_space = spaces.Box(0, 255, (36, 36, 1), np.uint8)

    def _look(self) -> np.ndarray:
        return super()._look()[:1].transpose(1, 2, 0)


class Stacks(DummyVecEnv):
    """Environments that say themselves how many frames they stack."""

    n_stack = 3


def of(env: Any, n_envs: int = 1) -> VecEnv:
    return make_vec_env(lambda: env() if isinstance(env, type) else Spaces(env, spaces.Discrete(2)), n_envs, seed=0)


FLOATS = spaces.Box(0, 1, (1, 36, 36), np.float32)
PARTS = spaces.Dict({"a": spaces.Box(0, 255, (3, 36, 36), np.uint8)})


@pytest.mark.parametrize(
    ("wrapped", "expected"),
    [
        (lambda: of(Images), 1),
        (lambda: VecFrameStack(of(Images), 4), 4),
        (lambda: VecFrameStack(of(Turned), 4), 4),
        (lambda: VecFrameStack(VecTransposeImage(of(Turned)), 4), 4),
        (lambda: VecTransposeImage(VecFrameStack(of(Turned), 4)), 4),
        (lambda: VecMonitor(VecFrameStack(DummyVecEnv([Turned]), 2)), 2),
        (lambda: VecFrameStack(VecMonitor(DummyVecEnv([Images])), 2), 2),
        (lambda: VecNormalize(VecFrameStack(of(Images), 4), norm_obs=False), 4),
        (lambda: VecNormalize(VecFrameStack(of(FLOATS), 4)), 1),
        (lambda: VecNormalize(VecFrameStack(of(spaces.Box(-1, 1, (3,))), 4)), 1),
        (lambda: VecFrameStack(of(PARTS), 4), 1),
        (lambda: VecExtractDictObs(VecFrameStack(of(PARTS), 4), "a"), 1),
        (lambda: VecFrameStack(of(spaces.Box(0, 9, (4, 2), np.int64)), 2), 1),  # along the last axis
        (lambda: VecFrameStack(of(spaces.Box(0, 9, (4, 2), np.int64)), 2, "first"), 2),
        (lambda: of(spaces.Box(0, 9, (), np.int64)), 1),
        (lambda: of(spaces.Discrete(4)), 1),
        (lambda: Stacks([Images]), 3),
        (lambda: VecMonitor(Stacks([Images])), 3),
        (lambda: Stacks([lambda: Spaces(spaces.Box(0, 9, (4,), np.int64), spaces.Discrete(2))]), 1),
    ],
)
def test_environments_say_whether_they_stack_frames(wrapped: Any, expected: int) -> None:
    assert stack_size(dae.PPO._wrap_env(wrapped())) == expected


def stacked_images(n_envs: int = 3) -> VecEnv:
    return VecFrameStack(of(Turned, n_envs), 3)


SMALL = {"n_steps": 12, "batch_size": 12, "n_epochs": 2, "seed": 0, "device": "cpu"}


def agent(**changes: Any) -> dae.PPO:
    return dae.PPO("CnnPolicy", stacked_images(), **SMALL | changes)


def weights(model: dae.PPO) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(model.policy.parameters())


@pytest.mark.parametrize(
    "changes", [{"advantage": "gae"}, {"row_length": 5, "batch_size": 10}, {"minibatches": "segments"}], ids=str
)
def test_training_is_the_same_bit_for_bit(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    single = agent(**changes).learn(72)
    for module in ("interface", "ppo"):
        monkeypatch.setattr(f"dae.agent.{module}.stack_size", lambda _: 1)
    whole = agent(**changes).learn(72)
    assert isinstance(single.rollout_buffer.observations, FrameStore)
    assert isinstance(whole.rollout_buffer.observations, torch.Tensor)
    assert torch.equal(weights(single), weights(whole))
    assert whole.rollout_buffer.terminated.any()


def test_loaded_agents_store_single_frames(tmp_path: Path) -> None:
    expected = agent()
    expected.save(tmp_path / "agent.zip")
    assert isinstance(expected.rollout_buffer.observations, FrameStore)
    at_once = dae.PPO.load(tmp_path / "agent.zip", env=stacked_images())
    assert isinstance(at_once.rollout_buffer.observations, FrameStore)
    later = dae.PPO.load(tmp_path / "agent.zip")
    assert isinstance(later.rollout_buffer.observations, torch.Tensor)
    later.set_env(stacked_images())
    for model in (expected, at_once, later):
        model.env.seed(3)
        set_random_seed(3)
        model.learn(36)
        assert isinstance(model.rollout_buffer.observations, FrameStore)
        assert torch.equal(weights(model), weights(expected))
    plain = make_vec_env(lambda: Spaces(later.observation_space, Images.action_space), 3)
    later.set_env(plain)
    later.learn(36)
    assert isinstance(later.rollout_buffer.observations, torch.Tensor)


def test_an_update_follows_a_rollout_from_a_checkpoint() -> None:
    collecting, updating = agent(), agent()
    updated = []
    for model in (collecting, updating):
        _, callback = model._setup_learn(36)
        if model is collecting:
            model.collect_rollouts(model.env, callback, model.rollout_buffer, 12)
            stored = _take_rollout(model)
        else:
            _restore_rollout(model, stored)
        set_random_seed(1)
        model.train()
        updated.append(weights(model))
    assert torch.equal(*updated)
    assert len(stored) < 1.2 * 3 * 12 * 36 * 36, "one frame a step, or little more"


def test_the_memory_of_single_frames_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(building, "make_vec_env", lambda _, n_envs, *__, **___: VecFrameStack(of(Turned), 4))
    monkeypatch.setattr(building, "require_memory", lambda _, size: asked.append(size))
    building.make_env(parse(["CartPole-v1", "--actors", "1000", "--steps", "50"]))
    assert 1000 * 50 * 36 * 36 < asked[0] < 1.2 * 1000 * 50 * 36 * 36
