"""One PPO update with DAE, Duel or Indirect, written slowly from the paper in float64.

It uses the data of a rollout and nothing else of the project: its own network code, loops over segments and steps, and
a plain Adam.
"""

import numpy as np
import torch
from torch import Tensor


def update(
    weights: dict[str, Tensor],
    data: dict[str, Tensor],
    orders: list[np.ndarray],
    *,
    method: str,
    rows: int,
    settings: dict[str, float],
) -> dict[str, Tensor]:
    """Return the weights after going through the rows in the given orders, `rows` at a time."""
    if settings.get("correction", 0.0):
        rest, estimates = corrected(data, settings)
        bootstrap = data["bootstrap"].double().clone()
        for b, t in np.ndindex(*bootstrap.shape):
            if t + 1 < bootstrap.shape[1] and not (data["terminated"][b, t] or data["truncated"][b, t]):
                bootstrap[b, t] += settings["correction"] * rest[b, t + 1]
        data = data | {"corrected": estimates, "bootstrap": bootstrap}
    length = int(settings.get("row_length") or data["rewards"].shape[1])
    data = {name: tensor.reshape(-1, length, *tensor.shape[2:]) for name, tensor in data.items()}
    w = {name: tensor.double().clone().requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.Adam(w.values(), lr=settings["learning_rate"], eps=1e-5)
    for order in orders:
        for start in range(0, len(order), rows):
            batch = {name: tensor[order[start : start + rows]] for name, tensor in data.items()}
            loss = minibatch_loss(w, batch, method, settings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return {name: tensor.detach() for name, tensor in w.items()}


def corrected(data: dict[str, Tensor], settings: dict[str, float]) -> tuple[Tensor, Tensor]:
    """Return, by the network that acted, what Â leaves of λ-sums of rewards, and the corrected estimates."""
    gamma, decay = settings["gamma"], settings["gamma"] * settings["gae_lambda"]
    rewards, values = data["rewards"].double(), data["values"].double()
    n_rows, n_steps = rewards.shape
    own, total, later = (torch.zeros(n_rows, n_steps).double() for _ in range(3))
    for b in range(n_rows):
        for t in reversed(range(n_steps)):
            mu, head = data["log_probs"][b, t].double().exp(), data["critic"][b, t].double()
            own[b, t] = head[int(data["actions"][b, t])] - (mu * head).sum()
            ends = bool(data["terminated"][b, t] or data["truncated"][b, t])
            following = 0.0 if data["terminated"][b, t] else data["bootstrap"][b, t].double()
            total[b, t] = rewards[b, t] + gamma * following - values[b, t]
            if not ends and t + 1 < n_steps:
                total[b, t] += decay * total[b, t + 1]
                later[b, t] = decay * (own[b, t + 1] + later[b, t + 1])
    covariance = np.cov((total - own).flatten().numpy(), later.flatten().numpy())
    weight = float(np.clip(covariance[0, 1] / covariance[1, 1], 0, 1))
    return total - weight * (own + later), total - weight * later


def mlp(w: dict[str, Tensor], x: Tensor, side: str) -> Tensor:
    for layer in (0, 2):
        x = torch.tanh(
            x @ w[f"mlp_extractor.{side}_net.{layer}.weight"].T + w[f"mlp_extractor.{side}_net.{layer}.bias"]
        )
    return x


def linear(w: dict[str, Tensor], x: Tensor, name: str) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def minibatch_loss(w: dict[str, Tensor], batch: dict[str, Tensor], method: str, settings: dict[str, float]) -> Tensor:
    gamma = settings["gamma"]
    critic_terms, frames = [], []
    for b in range(len(batch["rewards"])):
        steps = batch["rewards"].shape[1]
        start = 0
        while start < steps:  # one segment of the row after the other
            end = start
            while not (batch["terminated"][b, end] or batch["truncated"][b, end] or end == steps - 1):
                end += 1
            segment = []
            for t in range(start, end + 1):
                s, a = batch["observations"][b, t].double(), int(batch["actions"][b, t])
                mu = batch["log_probs"][b, t].double().exp()
                head = linear(w, mlp(w, s, "value"), "critic_net")
                value = linear(w, mlp(w, s, "value"), "value_net")[0]
                logits = linear(w, mlp(w, s, "policy"), "action_net")
                log_pi = logits - torch.logsumexp(logits, 0)
                centred = head - sum(mu[k] * head[k] for k in range(len(mu)))
                segment.append({"a": a, "mu": mu, "head": head, "A": centred, "V": value, "log_pi": log_pi})
                if "corrected" in batch:
                    segment[-1]["corrected"] = batch["corrected"][b, t]
            last = 0.0 if batch["terminated"][b, end] else batch["bootstrap"][b, end].double()
            for i, frame in enumerate(segment):
                length = len(segment) - i
                rewards = [batch["rewards"][b, start + i + k].double() for k in range(length)]
                target = sum(gamma**k * rewards[k] for k in range(length)) + gamma**length * last
                taken = frame["A"][frame["a"]]
                if method == "dae":
                    credit = sum(gamma**k * segment[i + k]["A"][segment[i + k]["a"]] for k in range(length))
                    critic_terms.append((target - credit - frame["V"]) ** 2)
                elif method == "duel":
                    critic_terms.append((target - taken - frame["V"]) ** 2)
                else:
                    q = frame["head"][frame["a"]]
                    critic_terms.append(0.5 * ((target - frame["V"]) ** 2 + (target - q) ** 2))
            frames += segment
            start = end + 1
    n = len(frames)
    if method == "indirect":
        raw = torch.stack([f["head"][f["a"]] - f["V"] for f in frames]).detach()
        advantages = (raw - raw.mean()) / (raw.std() + 1e-5)
    else:
        size = (sum((f["mu"] * f["A"].detach() ** 2).sum() for f in frames) / n) ** 0.5
        advantages = torch.stack([f["A"][f["a"]].detach() for f in frames]) / (size + 1e-5)
        if "corrected" in frames[0]:
            c = settings["correction"]
            mixed = torch.stack([(1 - c) * f["A"][f["a"]].detach() + c * f["corrected"] for f in frames])
            advantages = (mixed - mixed.mean()) / (mixed.std() + 1e-8)
    policy_terms, entropy_terms = [], []
    for frame, advantage in zip(frames, advantages, strict=True):
        ratio = (frame["log_pi"][frame["a"]] - frame["mu"][frame["a"]].log()).exp()
        clipped = ratio.clamp(1 - settings["clip_range"], 1 + settings["clip_range"])
        policy_terms.append(torch.minimum(ratio * advantage, clipped * advantage))
        entropy_terms.append(-(frame["log_pi"].exp() * frame["log_pi"]).sum())
    return (
        -sum(policy_terms) / n
        - settings["ent_coef"] * sum(entropy_terms) / n
        + settings["vf_coef"] * sum(critic_terms) / n
    )
