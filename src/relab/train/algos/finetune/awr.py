"""How does a policy become more like its own better actions? Advantage-weighted regression (Peng et al. 2019).

    L = -E[w log pi(a|s)] + c_v E[(V - G)²] / 2 - c_e E[H],    w = min(exp(A / beta), cap)

Weights of a minibatch are divided by their mean (`norm_weights`), so that the temperature changes which rows count and
not how long a step is. There is no ratio and no clip: epochs are limited by nothing but `epochs`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.finetune import equations
from relab.train.nets import networks


class Learned(NamedTuple):
    """Sums over the steps of one call."""

    updates: int
    loss: float  # of the policy, mean over the last epoch
    value_loss: float
    norms: np.ndarray


def learn(s: Any, columns: dict[str, np.ndarray], lr: float, ent_coef: float, policy_too: bool) -> Learned:
    """Epochs of minibatch steps on rows with obs, action, weight, target; `s` is PPO's state, whose shuffle it uses."""
    cfg, agent = s.cfg, s.agent
    rows = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in columns.items()}
    n, norms, last = len(columns["weight"]), [], []
    for epoch in range(cfg.epochs):
        for index in np.array_split(s.shuffle.permutation(n), min(cfg.minibatches, n)):
            some = {name: x[torch.from_numpy(index)] for name, x in rows.items()}
            agent.params.grad.zero_()
            policy, value, entropy = terms(agent, some, cfg.norm_weights, cfg.value_coef > 0)
            loss = cfg.value_coef * value + ((policy - ent_coef * entropy) if policy_too else 0.0)
            loss.backward()
            norms.append(s.adam.step(agent.params.flat.numpy(), agent.params.grad.numpy(), lr, cfg.max_grad_norm))
            clamp(agent, cfg)
            if epoch == cfg.epochs - 1:
                last.append((float(policy.detach()), float(value.detach())))
    mean = np.mean(last, axis=0)
    return Learned(len(norms), float(mean[0]), float(mean[1]), np.array(norms))


def terms(agent: Any, rows: dict[str, Tensor], norm_weights: bool, critic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(policy, value, entropy) terms of a minibatch."""
    out, log_std = networks.policy(agent.net, agent.params, rows["obs"]), agent.params.named.get("log_std")
    w = rows["weight"] / rows["weight"].mean().clamp(min=1e-12) if norm_weights else rows["weight"]
    policy = -(w * agent.head.log_prob(out, log_std, rows["action"])).mean()
    entropy = agent.head.entropy(out, log_std).mean()
    if not critic:
        return policy, torch.zeros((), requires_grad=True), entropy
    value = 0.5 * (networks.value(agent.net, agent.params, rows["obs"]) - rows["target"]).square().mean()
    return policy, value, entropy


def clamp(agent: Any, cfg: Any) -> None:
    if agent.head.gaussian:
        agent.params["log_std"].detach().clamp_(cfg.log_std_min, cfg.log_std_max)


def weight_metrics(w: np.ndarray, cap: float) -> dict[str, float]:
    """Before they are divided by their mean."""
    capped = float((w >= cap * (1 - 1e-6)).mean())
    metrics = {"policy/weight_mean": w.mean(), "policy/weight_std": w.std(), "policy/weight_max": w.max()}
    return {name: float(x) for name, x in metrics.items()} | {
        "policy/weight_capped": capped, "policy/weight_ess": equations.effective_share(w)}  # fmt: skip
