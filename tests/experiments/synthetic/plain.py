"""The chain experiment as anyone would write it first: one seed, PyTorch modules, one-hot inputs, a row for each step.

Shares nothing with the program but the settings. Losses are sums written out over time.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dae.experiments.synthetic.config import SyntheticConfig


def loop_over_time(x: Tensor, discount: float) -> Tensor:
    """Return Σ_{t' ≥ t} discount^{t'−t} x_t' of every row."""
    after, collected = torch.zeros(len(x)), []
    for t in reversed(range(x.shape[1])):
        after = x[:, t] + discount * after
        collected.append(after)
    return torch.stack(collected[::-1], 1)


class PlainAgent:
    """One seed. Its rewarded actions, initial weights and chances come from outside."""

    def __init__(
        self,
        config: SyntheticConfig,
        method: str,
        best: Tensor,
        layers: list[tuple[Tensor, Tensor]],
        sums: Callable[[Tensor, float], Tensor] = loop_over_time,
    ) -> None:
        self.config, self.method, self.best, self.sums = config, method, best, sums
        self.network = nn.Sequential(
            nn.Linear(config.states, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, len(layers[-1][1])),
        )
        with torch.no_grad():
            for module, (weight, bias) in zip(self.network[::2], layers, strict=True):
                module.weight.copy_(weight)
                module.bias.copy_(bias)
        self.logits = nn.Parameter(torch.zeros(config.states, 2))
        self.critic_adam = torch.optim.Adam(
            self.network.parameters(), lr=config.critic_learning_rate, eps=config.adam_eps
        )
        self.policy_adam = torch.optim.Adam([self.logits], lr=config.policy_learning_rate, eps=config.adam_eps)

    def iterate(self, chance: Tensor) -> tuple[float, float]:
        """Walk (trajectories, states) with these chances; return the error of the advantages and expected return."""
        walks, length = chance.shape
        probs = self.logits.softmax(-1).detach()
        states = torch.arange(length).repeat(walks)
        inputs = nn.functional.one_hot(states, length).float()
        actions = (chance.flatten() >= probs[states, 0]).long()
        rewards = (actions == self.best[states]).float()

        def heads() -> tuple[Tensor, Tensor]:
            out = self.network(inputs)
            return out[:, -1], out[:, :2]

        def taken(scores: Tensor) -> Tensor:
            return scores.gather(1, actions[:, None]).squeeze(1)

        def centred(scores: Tensor) -> Tensor:
            return scores - (probs[states] * scores).sum(1, keepdim=True)

        def sums(x: Tensor, discount: float) -> Tensor:
            return self.sums(x.view(walks, length), discount).flatten()

        gamma, lam = self.config.gamma, self.config.gae_lambda

        def gae() -> tuple[Tensor, Tensor]:
            values = heads()[0].detach().view(walks, length)
            following = torch.cat([values[:, 1:], torch.zeros(walks, 1)], 1)
            deltas = rewards.view(walks, length) + gamma * following - values
            advantages = sums(deltas.flatten(), gamma * lam)
            return advantages, advantages + values.flatten()

        targets = gae()[1] if self.method == "gae" else sums(rewards, gamma)

        def loss() -> Tensor:
            value, scores = heads()
            if self.method == "gae":
                return (value - targets).square().mean()
            if self.method == "duel":
                return (targets - taken(centred(scores)) - value).square().mean()
            if self.method == "indirect":
                return 0.5 * ((targets - value).square().mean() + (targets - taken(scores)).square().mean())
            unexplained = sums(rewards - taken(centred(scores)), gamma)
            if self.method == "monte-carlo":
                return unexplained.view(walks, length)[:, 0].square().mean()
            return (unexplained - value).square().mean()

        for _ in range(self.config.critic_steps):
            self.critic_adam.zero_grad()
            loss().backward()
            self.critic_adam.step()

        with torch.no_grad():
            value, scores = heads()
            if self.method == "gae":
                advantages = gae()[0]
            elif self.method == "indirect":
                advantages = taken(scores) - value
            else:
                advantages = taken(centred(scores))
        of_the_best = probs[torch.arange(length), self.best]
        error = (advantages - (rewards - of_the_best[states])).square().mean()

        for _ in range(self.config.policy_steps):
            log_probs = taken(self.logits.log_softmax(-1)[states])
            self.policy_adam.zero_grad()
            gains = log_probs * advantages
            (-(gains.sum() if self.config.policy_loss == "sum" else gains.mean())).backward()
            self.policy_adam.step()
        return float(error), float(of_the_best.sum())
