"""The batched formulas against double loops: value and gradient, for every way a segment can end."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dae import core
from dae.core import scan
from tests.core import reference
from tests.core.reference import Segments, random_segments

GAMMA, LAM = 0.97, 0.9
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
ENDINGS = {
    "none": (0.0, 0.0),
    "every step terminated": (1.0, 0.0),
    "every step truncated": (0.0, 1.0),
    "every step both": (1.0, 1.0),
    "terminated": (0.2, 0.0),
    "truncated": (0.0, 0.2),
    "mixed": (0.2, 0.2),
}
SHAPES = [(1, 1), (3, 1), (2, 2), (4, 17), (2, 33)]


def losses(module: object, s: Segments) -> dict[str, Callable[[], Tensor]]:
    ends = s.ends | {"gamma": GAMMA}
    flags = {"terminated": s.terminated, "truncated": s.truncated, "gamma": GAMMA}
    probe = torch.linspace(-1, 1, s.rewards.numel(), dtype=s.rewards.dtype).reshape(s.rewards.shape)

    def gae() -> Tensor:
        result = module.gae(s.rewards, s.values, **ends, lam=LAM)
        advantages = result[0] if isinstance(result, tuple) else result
        return (probe * advantages).sum()

    return {
        "dae_loss": lambda: module.dae_loss(s.rewards, s.advantages, s.values, **ends),
        "duel_loss": lambda: module.duel_loss(s.rewards, s.advantages, s.values, **ends),
        "indirect_loss": lambda: module.indirect_loss(s.rewards, s.advantages, s.values, **ends),
        "monte_carlo_dae_loss": lambda: module.monte_carlo_dae_loss(s.rewards, s.advantages, **flags),
        "n_step_targets": lambda: (probe * module.n_step_targets(s.rewards - s.advantages, **ends)).sum(),
        "gae": gae,
    }


def value_and_gradients(loss: Callable[[], Tensor], s: Segments) -> list[Tensor]:
    value = loss()
    gradients = torch.autograd.grad(value, (s.advantages, s.values), allow_unused=True, materialize_grads=True)
    return [value.detach(), *gradients]


@pytest.mark.parametrize("name", losses(core, random_segments(1, 1, terminated=0, truncated=0, dtype=torch.float64)))
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dense_elements", [0, 2**18], ids=["halving", "dense"])
def test_equals_the_double_loop(
    name: str, dtype: torch.dtype, ending: str, dense_elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_DENSE_ELEMENTS", dense_elements)
    terminated, truncated = ENDINGS[ending]
    for seed, (rows, steps) in enumerate(SHAPES):
        s = random_segments(rows, steps, terminated=terminated, truncated=truncated, dtype=dtype, seed=seed)
        if name == "monte_carlo_dae_loss" and not s.terminated.any():
            continue
        ours = value_and_gradients(losses(core, s)[name], s)
        expected = value_and_gradients(losses(reference, s)[name], s)
        for mine, theirs in zip(ours, expected, strict=True):
            assert mine.dtype == dtype
            torch.testing.assert_close(mine, theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["dae_loss", "duel_loss", "indirect_loss", "monte_carlo_dae_loss", "gae"])
@pytest.mark.parametrize("dense_elements", [0, 2**18], ids=["halving", "dense"])
def test_gradcheck(name: str, dense_elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_DENSE_ELEMENTS", dense_elements)
    s = random_segments(2, 7, terminated=0.2, truncated=0.2, dtype=torch.float64, seed=1)
    assert s.terminated.any()

    def loss(rewards: Tensor, advantages: Tensor, values: Tensor) -> Tensor:
        moved = Segments(rewards, advantages, values, s.bootstrap, s.terminated, s.truncated)
        return losses(core, moved)[name]()

    inputs = (s.rewards.requires_grad_(), s.advantages, s.values)
    assert torch.autograd.gradcheck(loss, inputs)
    assert torch.autograd.gradgradcheck(loss, inputs)


def test_a_long_row_needs_no_quadratic_memory() -> None:
    """A (T, T) matrix of this row would take 320 GB."""
    steps = 200_000
    s = random_segments(1, steps, terminated=0.0, truncated=0.001, dtype=torch.float64)
    targets = core.n_step_targets(s.rewards, **s.ends, gamma=GAMMA)
    expected, ahead = torch.empty(steps, dtype=torch.float64), 0.0
    rewards, bootstrap, truncated = s.rewards[0].tolist(), s.bootstrap[0].tolist(), s.truncated[0].tolist()
    for t in reversed(range(steps)):
        ahead = rewards[t] + GAMMA * (bootstrap[t] if truncated[t] or t == steps - 1 else ahead)
        expected[t] = ahead
    torch.testing.assert_close(targets[0], expected, rtol=1e-12, atol=1e-12)


def test_bootstrap_is_read_only_at_cuts_and_never_differentiated() -> None:
    s = random_segments(4, 20, terminated=0.2, truncated=0.2, dtype=torch.float64)
    read = s.truncated.clone()
    read[:, -1] = True
    read &= ~s.terminated
    poisoned = torch.where(read, s.bootstrap, torch.nan).requires_grad_()
    flags = {"terminated": s.terminated, "truncated": s.truncated, "gamma": GAMMA}
    for loss in (core.dae_loss, core.duel_loss, core.indirect_loss):
        value = loss(s.rewards, s.advantages, s.values, bootstrap=poisoned, **flags)
        assert value.detach() == loss(s.rewards, s.advantages, s.values, bootstrap=s.bootstrap, **flags).detach()
        assert torch.autograd.grad(value, poisoned, allow_unused=True) == (None,)
    advantages, returns = core.gae(s.rewards, s.values, bootstrap=poisoned, **flags, lam=LAM)
    expected = core.gae(s.rewards, s.values, bootstrap=s.bootstrap, **flags, lam=LAM)
    torch.testing.assert_close((advantages, returns), expected)
    assert torch.autograd.grad(advantages.sum(), poisoned, allow_unused=True) == (None,)


def test_monte_carlo_loss_leaves_out_what_is_no_whole_episode() -> None:
    rewards = torch.tensor([[1.0, 2.0, torch.nan, torch.nan], [4.0, 8.0, torch.nan, 1.0]])
    terminated = torch.tensor([[False, True, False, False], [True, False, False, True]])
    truncated = torch.tensor([[False, False, False, False], [False, False, True, False]])
    advantages = torch.zeros(2, 4)
    loss = core.monte_carlo_dae_loss(rewards, advantages, terminated=terminated, truncated=truncated, gamma=0.5)
    assert loss == pytest.approx((2.0**2 + 4.0**2 + 1.0**2) / 3)


def test_monte_carlo_loss_without_a_whole_episode_is_nan() -> None:
    never = torch.zeros(2, 3, dtype=torch.bool)
    zeros = torch.zeros(2, 3)
    assert core.monte_carlo_dae_loss(zeros, zeros, terminated=never, truncated=never, gamma=0.9).isnan()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["dae_loss", "duel_loss", "indirect_loss", "monte_carlo_dae_loss"])
def test_losses_of_half_precision_are_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    """Residuals of several hundred would overflow when squared, and their targets lose digits."""
    s = random_segments(16, 64, terminated=0.05, truncated=0.05, dtype=dtype)
    half = Segments(*(300 * x for x in (s.rewards, s.advantages, s.values, s.bootstrap)), s.terminated, s.truncated)
    floats = (x.float() for x in (half.rewards, half.advantages, half.values, half.bootstrap))
    ours, exact = losses(core, half)[name](), losses(core, Segments(*floats, s.terminated, s.truncated))[name]()
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_accumulated_in_float32(dtype: torch.dtype) -> None:
    s = random_segments(4, 64, terminated=0.05, truncated=0.05, dtype=dtype)
    exact = core.n_step_targets(s.rewards.double(), **(s.ends | {"bootstrap": s.bootstrap.double()}), gamma=GAMMA)
    ours = core.n_step_targets(s.rewards, **s.ends, gamma=GAMMA)
    assert ours.dtype == dtype
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double(), exact, rtol=unit, atol=4 * unit)


def test_works_under_vmap_and_func_grad() -> None:
    s = random_segments(3, 9, terminated=0.2, truncated=0.2, dtype=torch.float64)
    many = torch.randn(5, 3, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def loss(advantages: Tensor) -> Tensor:
        return core.dae_loss(s.rewards, advantages, s.values, **s.ends, gamma=GAMMA)

    batched = torch.func.vmap(torch.func.grad(loss))(many)
    for one, gradient in zip(many, batched, strict=True):
        torch.testing.assert_close(gradient, torch.func.grad(loss)(one))
