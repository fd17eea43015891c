"""The update: against a slow reference from the paper, its use of the data, and what it leaves to the device."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from torch.utils._python_dispatch import TorchDispatchMode

import dae
from dae.agent import Rollout
from tests.agent.reference_update import update

SETTINGS = {"learning_rate": 1e-3, "clip_range": 0.1, "ent_coef": 0.01, "vf_coef": 1.5, "gamma": 0.97}
N_ENVS, N_STEPS = 5, 40


def cut_cartpole() -> Any:
    return make_vec_env(lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 20), N_ENVS, seed=0)


def collected(advantage: str, **changes: Any) -> dae.PPO:
    """An agent that has just collected a rollout with terminated, truncated and unfinished episodes."""
    arguments = SETTINGS | {"n_steps": N_STEPS, "batch_size": 2 * N_STEPS, "n_epochs": 3, "seed": 1}
    arguments |= ({} if advantage == "gae" else {"row_length": None}) | changes
    model = dae.PPO("MlpPolicy", cut_cartpole(), advantage=advantage, **arguments)
    _, callback = model._setup_learn(N_ENVS * N_STEPS * 10)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, N_STEPS)
    rollout = model.rollout_buffer
    assert rollout.truncated.any()
    assert rollout.terminated.any()
    return model


@pytest.mark.parametrize(
    ("advantage", "correction", "row_length"),
    [
        ("dae", 0.0, None),
        ("dae", 0.0, 8),
        ("dae", 0.3, 8),
        ("dae", 1.0, None),
        ("dae", 1.0, 8),
        ("duel", 0.0, None),
        ("indirect", 0.0, None),
    ],
)
def test_an_update_equals_the_reference(advantage: str, correction: float, row_length: int | None) -> None:
    model = collected(advantage, max_grad_norm=None, correction=correction, row_length=row_length)
    # As after many updates, the policy is far from the one that acted: what confuses the two is far off.
    with torch.no_grad():
        model.policy.action_net.weight.normal_(std=0.3, generator=torch.Generator().manual_seed(0))
    rollout = model.rollout_buffer
    if correction:  # an acting network that explains something, so that its weight is neither 0 nor 1
        errors = rollout.rewards - rollout.values + 0.97 * rollout.bootstrap * ~rollout.terminated
        rollout.critic.zero_().scatter_(-1, rollout.actions.reshape(N_ENVS, N_STEPS, 1), 3 * errors.unsqueeze(-1))
    names = (
        "observations",
        "actions",
        "rewards",
        "terminated",
        "truncated",
        "bootstrap",
        "log_probs",
        "critic",
        "values",
    )
    data = {name: getattr(rollout, name).clone() for name in names}
    before = {
        name: tensor.clone() for name, tensor in model.policy.state_dict().items() if "extractor.flat" not in name
    }
    set_random_seed(3)
    length = row_length or N_STEPS
    orders = [np.random.permutation(N_ENVS * N_STEPS // length) for _ in range(3)]  # noqa: NPY002
    set_random_seed(3)
    model.train()
    assert not correction or 0.05 < float(model.estimator.control_weight) < 0.95
    expected = update(
        before,
        data,
        orders,
        method=advantage,
        rows=2 * N_STEPS // length,
        settings=SETTINGS | {"correction": correction, "gae_lambda": 0.95, "row_length": length},
    )
    after = model.policy.state_dict()
    for name, tensor in expected.items():
        torch.testing.assert_close(after[name].double(), tensor, rtol=0, atol=2e-5)
        assert (tensor - before[name]).abs().max() > 1e-4, f"{name} has not moved"


def test_the_bootstrap_is_the_value_of_the_true_successor() -> None:
    """A truncated row bootstraps with its terminal observation, the last column with the observation that follows."""
    model = collected("dae")
    rollout = model.rollout_buffer
    last = model.policy.predict_values(torch.as_tensor(model._last_obs)).flatten().detach()
    open_end = ~(rollout.truncated[:, -1] | rollout.terminated[:, -1])
    torch.testing.assert_close(rollout.bootstrap[open_end, -1], last[open_end])
    inside = rollout.truncated[:, :-1]
    following = model.policy.predict_values(rollout.observations[:, 1:][inside]).flatten().detach()
    assert (rollout.bootstrap[:, :-1][inside] != following).all(), "the next row's start is another episode's"
    torch.testing.assert_close(rollout.bootstrap[:, :-1][~inside], rollout.values[:, 1:][~inside])


def test_authors_truncation_handling_ends_the_episode() -> None:
    model = collected("dae")
    theirs = dae.PPO(
        "MlpPolicy", cut_cartpole(), n_steps=N_STEPS, batch_size=N_STEPS, seed=1, bootstrap_truncations=False
    )
    _, callback = theirs._setup_learn(1000)
    theirs.collect_rollouts(theirs.env, callback, theirs.rollout_buffer, N_STEPS)
    assert not theirs.rollout_buffer.truncated.any()
    ends = model.rollout_buffer.terminated | model.rollout_buffer.truncated
    assert torch.equal(theirs.rollout_buffer.terminated, ends)


def test_a_rollout_can_be_carried_over() -> None:
    seen = gym.spaces.Dict({"a": gym.spaces.Box(0, 1, (2, 3), np.bool_), "b": gym.spaces.Discrete(5)})
    first, second, smaller = (
        Rollout(n_steps, 3, seen, gym.spaces.MultiDiscrete([2, 3]), torch.device("cpu"), has_head=True)
        for n_steps in (4, 4, 2)
    )
    first.reset()
    first._make_masks([5])
    for k, tensor in enumerate(first.tensors.values()):
        tensor.copy_((torch.arange(tensor.numel()) % (k + 2)).reshape(tensor.shape))
    second.restore(first.tensors)
    assert second.full
    assert len(second.tensors) == 12
    assert all(torch.equal(tensor, first.tensors[name]) for name, tensor in second.tensors.items())
    with pytest.raises(ValueError, match="a rollout of another size"):
        smaller.restore(first.tensors)


@pytest.mark.parametrize("row_length", [None, 1, 2, 3, 4, 9])
@pytest.mark.parametrize(
    ("batching", "batch_size"),
    [*(("trajectories", size) for size in (1, 2, 3, 4, 8, 10, 12, 100)), ("steps", 7), ("steps", 100)],
)
def test_every_frame_is_used_once_an_epoch(batching: Any, batch_size: int, row_length: int | None) -> None:
    space = gym.spaces.Box(0, 255, (2,), np.uint8)
    rollout = Rollout(4, 5, space, gym.spaces.Discrete(3), torch.device("cpu"))
    rollout.reset()
    rollout.rewards[:] = torch.arange(20).reshape(5, 4)
    rollout.observations[..., 0] = torch.arange(20).reshape(5, 4)
    batches = list(rollout.minibatches(batching, batch_size, row_length))
    assert sorted(torch.cat([batch.rewards.flatten() for batch in batches]).tolist()) == list(range(20))
    for batch in batches:
        assert torch.equal(batch.observations[:, 0], batch.rewards.flatten().to(torch.uint8))
        if batching == "trajectories":
            length = min(4, batch_size, row_length or 4)
            assert batch.shape[1] in (length, 4 % length)
            assert batch.rewards.numel() <= batch_size
            assert (batch.rewards.diff(dim=1) == 1).all()
    assert rollout.observations.dtype == torch.uint8
    assert rollout.observations[0].is_contiguous()


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 5, 8, 100])
def test_segments_come_whole_and_end_as_in_the_rollout(batch_size: int, drop_last: bool) -> None:
    n_envs, n_steps = 6, 9
    rollout = Rollout(n_steps, n_envs, gym.spaces.Box(-1, 99, (1,)), gym.spaces.Discrete(3), torch.device("cpu"))
    rollout.reset()
    frames = torch.arange(n_envs * n_steps).reshape(n_envs, n_steps)
    rollout.rewards[:] = frames
    rollout.observations[..., 0] = frames
    rng = np.random.default_rng(0)
    ends = torch.from_numpy(rng.random((n_envs, n_steps)) < 0.3)
    rollout.truncated[:] = ends & torch.from_numpy(rng.random((n_envs, n_steps)) < 0.3)
    rollout.terminated[:] = ends & ~rollout.truncated
    rollout.bootstrap[:] = -frames.float()
    expected, begun = [], []
    for b, t in np.ndindex(n_envs, n_steps):
        begun.append(int(frames[b, t]))
        if ends[b, t] or t == n_steps - 1:
            expected.append(begun)
            begun = []
    assert len({len(segment) for segment in expected}) > 3
    batches = list(rollout.segments(batch_size, drop_last=drop_last))
    found = []
    for k, batch in enumerate(batches):
        assert batch.shape == (1, len(batch.observations))
        assert torch.equal(batch.observations[:, 0], batch.rewards[0])
        assert torch.equal(batch.bootstrap, -batch.rewards)
        closed = (batch.terminated | batch.truncated)[0]
        assert closed[-1]
        pieces = np.split(batch.rewards[0].int().numpy(), np.flatnonzero(closed.numpy()) + 1)[:-1]
        found += [piece.tolist() for piece in pieces]
        size = sum(map(len, pieces))
        last = k == len(batches) - 1
        assert size - len(pieces[-1]) < batch_size, "no more than it takes"
        assert size >= batch_size or (last and (not drop_last or k == 0))
        of_rollout = rollout.terminated.flatten()[batch.rewards[0].long()]
        assert torch.equal(batch.terminated[0], of_rollout), "what the rollout cuts is truncated, not terminated"
    assert len({tuple(segment) for segment in found}) == len(found)
    if drop_last and batch_size < 100:
        assert all(segment in expected for segment in found)
        assert sum(map(len, expected)) - sum(map(len, found)) < batch_size
    else:
        assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(("advantage", "correction"), [("dae", 0.0), ("dae", 1.0), ("duel", 0.0), ("indirect", 0.0)])
def test_whole_rows_without_an_end_are_segments(advantage: str, correction: float) -> None:
    """If no episode ends, an update from segments is that from rows, minibatch by minibatch."""
    weights = []
    for kind in ("rows", "segments"):
        env = dae.make_vec_env("CartPole-v1", 4, seed=0)
        settings = SETTINGS | {"n_steps": 4, "batch_size": 8, "n_epochs": 2, "correction": correction, "seed": 0}
        model = dae.PPO("MlpPolicy", env, advantage=advantage, minibatches=kind, row_length=None, **settings)
        callback = model._setup_learn(1)[1]
        model.collect_rollouts(model.env, callback, model.rollout_buffer, 4)
        assert not (model.rollout_buffer.terminated | model.rollout_buffer.truncated).any()
        set_random_seed(1)
        model.train()
        weights.append(torch.cat([p.flatten() for p in model.policy.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-6)


class Reads(TorchDispatchMode):
    """Count what makes a GPU wait: reading a number, or copying to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "_local_scalar_dense" in str(func) or "is_nonzero" in str(func) or "aten.nonzero" in str(func):
            self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("advantage", ["dae", "duel", "indirect", "gae"])
def test_the_update_loop_reads_nothing_back(advantage: str) -> None:
    model = collected(advantage, batch_size=N_STEPS)
    model._log_update = model._require_finite_update = lambda *_: None  # type: ignore[method-assign]
    with Reads() as reads:
        model.train()
    assert reads.count == 0


@pytest.mark.parametrize("changes", [{}, {"minibatches": "segments"}], ids=str)
def test_an_update_can_be_watched_which_changes_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    watched, alone = collected("dae", **changes), collected("dae", **changes)
    shares: list[float] = []
    watched.after_minibatch = shares.append
    watched._log_update = watched._require_finite_update = lambda *_: None  # type: ignore[method-assign]
    weights = []
    for model in (watched, alone):
        set_random_seed(3)
        with Reads() as reads:
            model.train()
        weights.append(torch.nn.utils.parameters_to_vector(model.policy.parameters()))
        assert model is alone or changes or reads.count == 0
    assert torch.equal(*weights)
    if not changes:
        assert shares == pytest.approx([(5 * epoch + rows) / 15 for epoch in range(3) for rows in (2, 4, 5)])
    assert sorted(shares) == shares
    assert shares[-1] == 1

    del watched._log_update, watched._require_finite_update
    watched.save(tmp_path / "agent.zip")
    assert dae.PPO.load(tmp_path / "agent.zip").after_minibatch is None


def test_the_counter_of_reads_counts() -> None:
    with Reads() as reads:
        torch.ones(3).sum().item()
        bool(torch.ones(()) > 0)
    assert reads.count == 2


def test_a_kl_penalty_can_replace_clipping() -> None:
    free, held = (collected("dae", kl_coef=coefficient, n_epochs=10) for coefficient in (0.0, 100.0))
    moved = []
    for model in (free, held):
        observations = model.rollout_buffer.observations.flatten(0, 1)
        before = model.policy.get_distribution(observations).distribution.probs.detach()
        model.train()
        moved.append((model.policy.get_distribution(observations).distribution.probs - before).abs().mean().item())
    assert moved[1] < 0.5 * moved[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_torch_compile_gives_the_same_update() -> None:
    weights = []
    for compiled in (False, True):
        model = collected("dae", torch_compile=compiled, n_epochs=1)
        set_random_seed(0)
        model.train()
        weights.append(torch.nn.utils.parameters_to_vector(model.policy.parameters()))
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-5)
