"""Actor-critics on the chain, one for each seed, trained as one computation.

Seeds train in groups. A seed always has the same place in its group (seed 23 the fourth in the second), and tensors
always have room for a whole group, even if seeds are missing: so every number is rounded the same way, and a seed's
results are the same bits whatever other seeds run beside it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from dae.core import center, dae_loss, duel_loss, gae, indirect_loss, monte_carlo_dae_loss
from dae.experiments.synthetic.config import Method, SyntheticConfig
from dae.experiments.synthetic.critics import Critics

GROUP = 20  # enough to make the calls worth while, few enough for a core's cache


def grouped(seeds: Sequence[int]) -> list[list[int]]:
    """Split seeds into groups of neighbours that train together."""
    cut: list[list[int]] = []
    for seed in sorted(seeds):
        if cut and cut[-1][-1] == seed - 1 and seed % GROUP:
            cut[-1].append(seed)
        else:
            cut.append([seed])
    return cut


@dataclass(frozen=True)
class Walks:
    """What a group did in one iteration: S seeds, N walks each, over L states."""

    probs: Tensor  # (S, 2, L), the policies
    actions: Tensor  # (S, N, L)
    rewards: Tensor  # (S, N, L)

    def of_actions(self, per_action: Tensor) -> Tensor:
        """Pick from (S, 2, L) what belongs to the actions taken, (S, N, L)."""
        return torch.where(self.actions == 0, per_action[:, None, 0], per_action[:, None, 1])

    def rows(self, per_state_or_step: Tensor) -> Tensor:
        """Spread (S, L) or (S, N, L) into rows, (S·N, L), as `core` takes them."""
        if per_state_or_step.ndim == 2:
            per_state_or_step = per_state_or_step[:, None].expand_as(self.rewards)
        return per_state_or_step.flatten(0, 1)

    @cached_property
    def ends(self) -> dict[str, Tensor]:
        """The last state of the chain ends a walk, so that nothing is ever bootstrapped."""
        rewards = self.rows(self.rewards)
        terminated = torch.zeros_like(rewards, dtype=torch.bool)
        terminated[:, -1] = True
        return {
            "bootstrap": torch.zeros_like(rewards),
            "terminated": terminated,
            "truncated": torch.zeros_like(terminated),
        }


class Estimator(ABC):
    """How a method trains its critic and reads advantages from it. `outputs` is the critic's, (S, heads, L)."""

    heads: int

    def __init__(self, gamma: float, lam: float) -> None:
        self.gamma, self.lam = gamma, lam

    def prepare(self, walks: Walks, outputs: Tensor) -> None:  # noqa: B027 (most have nothing to prepare)
        """Prepare, once per iteration, before the critic changes."""

    @abstractmethod
    def loss(self, walks: Walks, outputs: Tensor) -> Tensor:
        """Return the critics' loss, a mean over all steps of the group."""

    @abstractmethod
    def advantages(self, walks: Walks, outputs: Tensor) -> Tensor:
        """Return the estimates for the actions taken, (S, N, L)."""


class DAE(Estimator):
    heads = 3
    core_loss = staticmethod(dae_loss)

    def loss(self, walks: Walks, outputs: Tensor) -> Tensor:
        return self.core_loss(
            walks.rows(walks.rewards),
            walks.rows(self.advantages(walks, outputs)),
            walks.rows(outputs[:, 2]),
            **walks.ends,
            gamma=self.gamma,
        )

    def advantages(self, walks: Walks, outputs: Tensor) -> Tensor:
        centred = center(outputs[:, :2].mT, walks.probs.mT).mT
        return walks.of_actions(centred)


class Duel(DAE):
    core_loss = staticmethod(duel_loss)


class MonteCarloDAE(DAE):
    heads = 2

    def loss(self, walks: Walks, outputs: Tensor) -> Tensor:
        ends = walks.ends
        return monte_carlo_dae_loss(
            walks.rows(walks.rewards),
            walks.rows(self.advantages(walks, outputs)),
            terminated=ends["terminated"],
            truncated=ends["truncated"],
            gamma=self.gamma,
        )


class Indirect(Estimator):
    heads = 3

    def loss(self, walks: Walks, outputs: Tensor) -> Tensor:
        return indirect_loss(
            walks.rows(walks.rewards),
            walks.rows(walks.of_actions(outputs[:, :2])),
            walks.rows(outputs[:, 2]),
            **walks.ends,
            gamma=self.gamma,
        )

    def advantages(self, walks: Walks, outputs: Tensor) -> Tensor:
        return walks.of_actions(outputs[:, :2]) - outputs[:, None, 2]


class GAE(Estimator):
    heads = 1

    def prepare(self, walks: Walks, outputs: Tensor) -> None:
        self._returns = self._gae(walks, outputs)[1]

    def loss(self, walks: Walks, outputs: Tensor) -> Tensor:
        return nn.functional.mse_loss(walks.rows(outputs[:, 0]), self._returns)

    def advantages(self, walks: Walks, outputs: Tensor) -> Tensor:
        return self._gae(walks, outputs)[0].view_as(walks.rewards)

    def _gae(self, walks: Walks, outputs: Tensor) -> tuple[Tensor, Tensor]:
        values = walks.rows(outputs[:, 0].detach())
        return gae(walks.rows(walks.rewards), values, **walks.ends, gamma=self.gamma, lam=self.lam)


ESTIMATORS: dict[Method, type[Estimator]] = {
    "dae": DAE,
    "gae": GAE,
    "monte-carlo": MonteCarloDAE,
    "duel": Duel,
    "indirect": Indirect,
}


class Learners:
    """The agents of some seeds of one group, neighbours of each other."""

    def __init__(self, config: SyntheticConfig, method: Method, seeds: Sequence[int], device: torch.device) -> None:
        self.config, self.device = config, device
        self.estimator = ESTIMATORS[method](config.gamma, config.gae_lambda)
        first = seeds[0] % GROUP
        if list(seeds) != list(range(seeds[0], seeds[-1] + 1)) or first + len(seeds) > GROUP:
            raise ValueError(f"seeds are {list(seeds)}: they must be neighbours within a group of {GROUP}")
        self.present = slice(first, first + len(seeds))
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        # Drawn first, so that a seed has the same rewards with every method.
        self.best = self._draw(lambda generator: torch.randint(2, (config.states,), generator=generator))
        if not config.swap_rewards:
            self.best.zero_()
        self.critics = Critics(
            self._uniform,
            self.present,
            states=config.states,
            hidden=config.hidden,
            heads=self.estimator.heads,
            learning_rate=config.critic_learning_rate,
            eps=config.adam_eps,
        )
        self.logits = torch.zeros(GROUP, 2, config.states, device=device, requires_grad=True)
        self._policy_adam = torch.optim.Adam(
            [self.logits], lr=config.policy_learning_rate, eps=config.adam_eps, fused=True
        )
        self._outputs = self.critics.forward()

    def iterate(self) -> tuple[Tensor, Tensor]:
        """Walk, train the critics, estimate advantages, train the policies.

        Return each seed's mean squared error of the advantages and the expected return of the policy that walked.
        """
        walks = self.walk()
        self.estimator.prepare(walks, self._outputs)
        for _ in range(self.config.critic_steps):
            outputs = self._outputs.requires_grad_()
            # The sum of every seed's own mean: no seed's gradient is smaller because there are others.
            loss = self.estimator.loss(walks, outputs) * GROUP
            self.critics.step(torch.autograd.grad(loss, outputs)[0])
            # The next walks visit the same states: these are also the outputs that the next iteration begins with.
            self._outputs = self.critics.forward()
        advantages = self.estimator.advantages(walks, self._outputs)
        of_the_best = walks.probs.gather(1, self.best[:, None]).squeeze(1)
        true_advantages = walks.rewards - of_the_best[:, None]
        for _ in range(self.config.policy_steps):
            log_probs = walks.of_actions(self.logits.log_softmax(1))
            objective = (log_probs * advantages).sum()
            loss = -objective if self.config.policy_loss == "sum" else -objective / advantages[0].numel()
            (self.logits.grad,) = torch.autograd.grad(loss, self.logits)
            self._policy_adam.step()
        errors = (advantages - true_advantages).square().mean((1, 2))
        return errors[self.present], of_the_best.sum(-1)[self.present]

    def walk(self) -> Walks:
        """Let every policy walk the chain. The best action of a state earns 1, the other 0."""
        probs = self.logits.detach().softmax(1)
        shape = self.config.trajectories, self.config.states
        chance = self._draw(lambda generator: torch.rand(shape, generator=generator))
        actions = (chance >= probs[:, None, 0]).long()
        return Walks(probs, actions, (actions == self.best[:, None]).float())

    def _uniform(self, bound: float, shape: tuple[int, ...]) -> Tensor:
        return self._draw(lambda generator: torch.empty(shape).uniform_(-bound, bound, generator=generator))

    def _draw(self, draw: Callable[[torch.Generator], Tensor]) -> Tensor:
        """Draw for each seed from its own random stream, (GROUP, ...). The streams do not depend on the device."""
        drawn = torch.stack([draw(generator) for generator in self._generators])
        group = torch.zeros(GROUP, *drawn.shape[1:], dtype=drawn.dtype)
        group[self.present] = drawn
        return group.to(self.device)
