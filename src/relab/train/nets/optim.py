"""How do gradients become steps on any device? Adam on one flat vector (Kingma & Ba 2015), gradients clipped by norm.

On the CPU mlps.Adam does the same in one kernel call.

Written here because constructing any torch.optim optimiser imports torch._dynamo, which takes a second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from relab.base.documents import Tree


class Adam:
    """theta -= lr * m_hat / (sqrt(v_hat) + eps)."""

    def __init__(self, theta: Tensor, eps: float = 1e-8, betas: tuple[float, float] = (0.9, 0.999)):
        self.m, self.v, self.updates = torch.zeros_like(theta), torch.zeros_like(theta), 0
        self.scratch, self.eps, self.betas = torch.zeros_like(theta), eps, betas

    def to_tree(self) -> Tree:
        return {"m": self.m, "v": self.v, "updates": self.updates}

    def load(self, tree: Mapping[str, Any]) -> None:
        self.m.copy_(torch.from_numpy(tree["m"]))
        self.v.copy_(torch.from_numpy(tree["v"]))
        self.updates = int(tree["updates"])

    @torch.no_grad()
    def step(self, theta: Tensor, grad: Tensor, lr: float, max_norm: float = math.inf) -> float:
        """One step, the gradient's norm cut to `max_norm`; the norm before."""
        norm = clip_norm(grad, max_norm)
        self.updates += 1
        b1, b2 = self.betas
        self.m.lerp_(grad, 1 - b1)
        self.v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
        torch.sqrt(self.v, out=self.scratch)
        self.scratch.div_((1 - b2**self.updates) ** 0.5).add_(self.eps)
        theta.addcdiv_(self.m, self.scratch, value=-lr / (1 - b1**self.updates))
        return norm

    def norm(self, grad: Tensor) -> float:
        return clip_norm(grad, math.inf)


@torch.no_grad()
def clip_norm(grad: Tensor, max_norm: float) -> float:
    """Scale `grad` in place so that its norm is at most `max_norm`; returns the norm before."""
    norm = float(torch.linalg.vector_norm(grad))
    if norm > max_norm:
        grad.mul_(max_norm / (norm + 1e-6))
    return norm
