"""Processes that train together make the update that one process would make of all their data."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
import torch.distributed as dist
from stable_baselines3.common.env_util import make_vec_env

import dae
from dae.agent import parallel
from dae.errors import UserError
from tests.processes import Fork

N_STEPS = 32
ROWS = (
    "observations",
    "actions",
    "rewards",
    "values",
    "log_prob",
    "bootstrap",
    "terminated",
    "truncated",
    "log_probs",
    "critic",
)


def together(processes: int, folder: Path, what: Callable[[int], None]) -> None:
    """Run a function in several processes of a gloo group; all must succeed."""
    folder.mkdir(exist_ok=True)

    def process(rank: int) -> int:
        store = f"file://{folder / 'store'}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=processes)
        what(rank)
        dist.barrier()
        return 0

    children = [Fork(partial(process, rank), folder / "log.txt") for rank in range(processes)]
    assert [child.wait() for child in children] == [0] * processes, (folder / "log.txt").read_text()


def agent(advantage: str, n_envs: int, **changes: Any) -> dae.PPO:
    env = make_vec_env(lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 20), n_envs, seed=0)
    settings = {"learning_rate": 1e-3, "clip_range": 0.1, "n_epochs": 3, "seed": 1, "n_steps": N_STEPS}
    settings |= {"batch_size": n_envs * N_STEPS, "max_grad_norm": 0.1} | changes
    model = dae.PPO("MlpPolicy", env, advantage=advantage, **settings)
    model._setup_learn(10_000)
    return model


@pytest.mark.parametrize(
    ("advantage", "changes"),
    [
        ("dae", {}),
        ("dae", {"correction": 0.0, "row_length": None}),
        ("gae", {}),
        ("duel", {}),
        ("indirect", {}),
        ("gae", {"target_kl": 1e-5}),
        ("dae", {"kl_coef": 1.0}),
    ],
    ids=["dae", "uncorrected", "gae", "duel", "indirect", "target_kl", "kl_coef"],
)
def test_the_update_of_two_processes_is_that_of_one_with_the_same_data(
    advantage: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    whole = agent(advantage, 4, **changes)
    _, callback = whole._setup_learn(10_000)
    whole.collect_rollouts(whole.env, callback, whole.rollout_buffer, N_STEPS)
    if whole.rollout_buffer.critic is not None:
        whole.rollout_buffer.critic *= 20  # of some weight, and too large to be subtracted as it is
    before = {name: tensor.clone() for name, tensor in whole.policy.state_dict().items()}

    def half(rank: int) -> None:
        model = agent(advantage, 2, **changes)
        for name in ROWS:
            rows = getattr(whole.rollout_buffer, name)
            setattr(model.rollout_buffer, name, None if rows is None else rows[2 * rank : 2 * rank + 2].clone())
        model.train()
        torch.save(model.policy.state_dict(), tmp_path / f"weights-{rank}")

    together(2, tmp_path / "group", half)
    whole.train()
    assert not whole.correction or 0 < float(whole.estimator.control_weight) < 1
    moved = 0.0
    of_ranks = [torch.load(tmp_path / f"weights-{rank}", weights_only=True) for rank in range(2)]
    for name, expected in whole.policy.state_dict().items():
        torch.testing.assert_close(of_ranks[0][name], expected, rtol=0, atol=2e-6)
        assert torch.equal(of_ranks[0][name], of_ranks[1][name])
        moved = max(moved, float((expected - before[name]).abs().max()))
    assert moved > 5e-4


def test_processes_begin_with_the_same_weights_and_play_differently(tmp_path: Path) -> None:
    def learn(rank: int) -> None:
        model = agent("dae", 2, seed=7)
        start = {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}
        model.learn(4 * N_STEPS * 4)
        assert model.num_timesteps == 4 * N_STEPS * 4
        rollout = model.rollout_buffer
        torch.save((start, model.policy.state_dict(), rollout.actions, rollout.observations), tmp_path / f"rank-{rank}")

    together(2, tmp_path / "group", learn)
    (start, end, actions, seen), (start_1, end_1, actions_1, seen_1) = (
        torch.load(tmp_path / f"rank-{rank}", weights_only=True) for rank in range(2)
    )
    assert all(torch.equal(start[name], start_1[name]) for name in start)
    assert all(torch.equal(end[name], end_1[name]) for name in end)
    assert any(not torch.equal(start[name], end[name]) for name in end)
    assert not torch.equal(actions, actions_1)
    assert not torch.equal(seen[:, 0], seen_1[:, 0])  # other games from the start


def test_what_fails_in_one_process_fails_in_all_and_the_first_knows_why(tmp_path: Path) -> None:
    def work(rank: int) -> None:
        def fail(at: int) -> str:
            if rank == at:
                raise ValueError("no room")
            return f"done by {rank}"

        assert parallel.together(lambda: fail(-1)) == f"done by {rank}"
        with pytest.raises(ValueError if rank == 1 else UserError, match="no room") as caught:
            parallel.together(lambda: fail(1))
        if rank == 0:
            assert str(caught.value) == "process 1 of 2 failed: ValueError: no room"
        assert parallel.from_first(lambda: f"of {rank}") == "of 0"
        with pytest.raises(ValueError if rank == 0 else UserError, match="no room"):
            parallel.on_first(lambda: fail(0))

    together(2, tmp_path / "group", work)


def test_contents_are_gathered_and_scattered_by_rank(tmp_path: Path) -> None:
    def talk(rank: int) -> None:
        gathered = parallel.gather(b"x" * rank)
        assert gathered == ([b"", b"x", b"xx"] if rank == 0 else [])
        assert parallel.scatter([b"a", b"", b"ccc"] if rank == 0 else []) == [b"a", b"", b"ccc"][rank]
        assert parallel.broadcast([3.0 + rank]) == [3.0]
        assert parallel.any_of(rank == 2)
        assert not parallel.any_of(False)
        assert float(parallel.mean(torch.tensor([0.0, 3.0 * rank]))) == 1.5

    together(3, tmp_path / "group", talk)
