"""Centring, normalisation and the policy's side of PPO, against torch.distributions and plain sums."""

import pytest
import torch
from torch.distributions import Categorical, kl_divergence

from dae import core

ROWS, STEPS, ACTIONS = 3, 5, 4


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_centred_functions_average_to_zero_under_the_policy() -> None:
    probs = draw(ROWS, STEPS, ACTIONS).softmax(-1)
    f = draw(ROWS, STEPS, ACTIONS, seed=1)
    centred = core.center(f, probs)
    for b in range(ROWS):
        for t in range(STEPS):
            mean = sum(probs[b, t, a] * f[b, t, a] for a in range(ACTIONS))
            torch.testing.assert_close(centred[b, t], f[b, t] - mean)
    torch.testing.assert_close(core.center(centred, probs), centred)


def test_the_gradient_flows_through_the_centring_sum() -> None:
    probs = draw(ACTIONS).softmax(-1)
    f = draw(ACTIONS, seed=1).requires_grad_()
    (gradient,) = torch.autograd.grad(core.center(f, probs)[0], f)
    torch.testing.assert_close(gradient, torch.eye(ACTIONS, dtype=torch.float64)[0] - probs)
    assert torch.autograd.gradcheck(core.center, (f, probs.requires_grad_()))


def test_normalised_advantages_have_unit_size_under_the_policy_and_keep_their_centre() -> None:
    probs = draw(ROWS, STEPS, ACTIONS).softmax(-1)
    advantages = core.center(100 * draw(ROWS, STEPS, ACTIONS, seed=1), probs)
    normalised = core.normalize_advantages(advantages, probs, eps=0)
    total = sum(
        probs[b, t, a] * normalised[b, t, a] ** 2 for b, t, a in torch.cartesian_prod(*map(torch.arange, probs.shape))
    )
    assert total / (ROWS * STEPS) == pytest.approx(1)
    torch.testing.assert_close(core.center(normalised, probs), normalised)
    torch.testing.assert_close(normalised / normalised[0, 0, 0], advantages / advantages[0, 0, 0])


def test_normalisation_adds_the_papers_constant_to_the_scale() -> None:
    """Advantages of typical size 1e-5 are halved."""
    probs = torch.full((1, 1, 2), 0.5, dtype=torch.float64)
    advantages = torch.tensor([[[1e-5, -1e-5]]], dtype=torch.float64)
    torch.testing.assert_close(core.normalize_advantages(advantages, probs), advantages / 2e-5)


def test_zero_advantages_normalise_to_zero_without_a_gradient() -> None:
    probs = torch.full((2, 3, 2), 0.5)
    normalised = core.normalize_advantages(torch.zeros(2, 3, 2, requires_grad=True), probs)
    assert (normalised == 0).all()
    assert not normalised.requires_grad


def test_large_advantages_normalise_in_half_precision() -> None:
    probs = torch.full((2, 3, 2), 0.5, dtype=torch.float16)
    advantages = torch.tensor([300.0, -300.0], dtype=torch.float16).expand(2, 3, 2)
    normalised = core.normalize_advantages(advantages, probs)
    assert normalised.dtype == torch.float16
    torch.testing.assert_close(normalised.abs(), torch.ones_like(normalised))


@pytest.mark.parametrize("advantage", [1.5, -1.5])
@pytest.mark.parametrize("ratio", [0.5, 0.95, 1.0, 1.05, 2.0])
def test_clipped_surrogate(advantage: float, ratio: float) -> None:
    log_probs = torch.tensor([ratio], dtype=torch.float64).log().requires_grad_()
    old_log_probs = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    advantages = torch.tensor([advantage], dtype=torch.float64, requires_grad=True)
    objective = core.clipped_surrogate(log_probs, advantages, old_log_probs=old_log_probs, clip_range=0.1)
    clipped = min(max(ratio, 0.9), 1.1)
    assert objective.item() == pytest.approx(min(ratio * advantage, clipped * advantage))
    gradient, *others = torch.autograd.grad(objective, (log_probs, advantages, old_log_probs), allow_unused=True)
    assert others == [None, None]
    active = ratio * advantage <= clipped * advantage
    assert gradient.item() == pytest.approx(ratio * advantage if active else 0)


def test_entropy_and_divergence_agree_with_torch_distributions() -> None:
    mu, pi = Categorical(logits=draw(ROWS, STEPS, ACTIONS)), Categorical(logits=draw(ROWS, STEPS, ACTIONS, seed=1))
    torch.testing.assert_close(core.entropy(pi.logits), pi.entropy())
    torch.testing.assert_close(core.kl_divergence(pi.logits, old_log_probs=mu.logits), kl_divergence(mu, pi))


def test_impossible_actions_add_nothing_to_entropy_divergence_and_their_gradients() -> None:
    logits = torch.tensor([[0.3, -0.2, -torch.inf]], dtype=torch.float64, requires_grad=True)
    two = logits[:, :2].detach().requires_grad_()
    mu = torch.tensor([[0.4, 0.6, 0.0]], dtype=torch.float64).log()
    for function in (core.entropy, lambda x: core.kl_divergence(x, old_log_probs=mu[:, : x.shape[1]])):
        masked, plain = function(logits.log_softmax(-1)), function(two.log_softmax(-1))
        torch.testing.assert_close(masked, plain)
        (masked_gradient,) = torch.autograd.grad(masked, logits)
        (plain_gradient,) = torch.autograd.grad(plain, two)
        torch.testing.assert_close(masked_gradient[:, :2], plain_gradient)
        assert masked_gradient[0, 2] == 0


def test_divergence_from_an_action_that_the_new_policy_cannot_take_is_infinite() -> None:
    mu, pi = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]]).log()
    assert core.kl_divergence(pi, old_log_probs=mu) == torch.inf


def test_divergence_has_no_gradient_for_the_behaviour_policy() -> None:
    mu, pi = (torch.tensor([p, 1 - p]).log().requires_grad_() for p in (0.3, 0.6))
    gradients = torch.autograd.grad(core.kl_divergence(pi, old_log_probs=mu), (pi, mu), allow_unused=True)
    assert gradients[0] is not None
    assert gradients[1] is None
