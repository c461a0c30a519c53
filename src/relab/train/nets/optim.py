"""How do gradients become steps on any device? Adam, AdamW, Muon on one flat vector, gradients clipped by norm.

Adam: Kingma & Ba 2015; on the CPU mlps.Adam does the same in one kernel call. AdamW: Loshchilov & Hutter 2019.
Muon: Jordan et al. 2024.

Written here because constructing any torch.optim optimiser imports torch._dynamo, which takes a second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from relab.base.documents import Tree
from relab.train.nets.networks import Params, split

NS = (3.4445, -4.7750, 2.0315)  # of Newton-Schulz: singular values between 0.01 and 1 end up in 0.7 to 1.2
NS_STEPS = 5
BESIDE = 0.1  # learning rate of what is not a matrix, as a share of Muon's


class Adam:
    """theta -= lr * m_hat / (sqrt(v_hat) + eps), after theta *= 1 - lr * decay (AdamW)."""

    def __init__(self, theta: Tensor, eps: float = 1e-8, betas: tuple[float, float] = (0.9, 0.999), decay: float = 0.0):
        self.m, self.v, self.updates = torch.zeros_like(theta), torch.zeros_like(theta), 0
        self.scratch, self.eps, self.betas, self.decay = torch.zeros_like(theta), eps, betas, decay

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
        if self.decay:
            theta.mul_(1.0 - lr * self.decay)
        self.m.lerp_(grad, 1 - b1)
        self.v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
        torch.sqrt(self.v, out=self.scratch)
        self.scratch.div_((1 - b2**self.updates) ** 0.5).add_(self.eps)
        theta.addcdiv_(self.m, self.scratch, value=-lr / (1 - b1**self.updates))
        return norm

    def norm(self, grad: Tensor) -> float:
        return clip_norm(grad, math.inf)


class Muon:
    """Matrices: theta -= lr sqrt(max(1, rows / columns)) orthogonal(g + momentum * m), m = momentum * m + g (Nesterov).

    Biases and deviations go by Adam at a tenth of the rate. Both share one clipped gradient.
    """

    def __init__(self, params: Params, eps: float = 1e-8, momentum: float = 0.95, decay: float = 0.0):
        self.adam = Adam(params.flat, eps)
        self.buffer, self.momentum, self.decay = torch.zeros_like(params.flat), momentum, decay
        self.shapes = {name: tuple(view.shape) for name, view in params.named.items()}
        self.matrix = {name: len(shape) > 1 for name, shape in self.shapes.items()}
        self.eps, self.betas = eps, self.adam.betas

    @property
    def updates(self) -> int:
        return self.adam.updates

    def to_tree(self) -> Tree:
        return self.adam.to_tree() | {"momentum": self.buffer}

    def load(self, tree: Mapping[str, Any]) -> None:
        self.adam.load(tree)
        self.buffer.copy_(torch.from_numpy(tree["momentum"]))

    @torch.no_grad()
    def step(self, theta: Tensor, grad: Tensor, lr: float, max_norm: float = math.inf) -> float:
        """One step, the gradient's norm cut to `max_norm`; the norm before."""
        norm = clip_norm(grad, max_norm)
        before = theta.clone()
        self.adam.step(theta, grad, BESIDE * lr)
        self.buffer.mul_(self.momentum).add_(grad)
        ahead = grad + self.momentum * self.buffer
        views = zip(self.shapes, *(split(x, self.shapes).values() for x in (theta, before, ahead)))
        for name, now, old, push in views:
            if self.matrix[name]:
                flat = push.reshape(len(push), -1)  # a filter is a row
                step = orthogonalised(flat).mul_(max(1.0, flat.shape[0] / flat.shape[1]) ** 0.5)
                now.copy_(old.mul(1.0 - lr * self.decay).sub_(step.view_as(old), alpha=lr))
        return norm

    def norm(self, grad: Tensor) -> float:
        return clip_norm(grad, math.inf)


def orthogonalised(g: Tensor, steps: int = NS_STEPS) -> Tensor:
    """Nearly U V^T of g = U S V^T by Newton-Schulz: X <- a X + (b A + c A A) X with A = X X^T, begun at norm 1."""
    a, b, c = NS
    x = g.T if g.shape[0] > g.shape[1] else g
    x = x / (torch.linalg.vector_norm(x) + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if g.shape[0] > g.shape[1] else x).contiguous()


@torch.no_grad()
def clip_norm(grad: Tensor, max_norm: float) -> float:
    """Scale `grad` in place so that its norm is at most `max_norm`; returns the norm before."""
    norm = float(torch.linalg.vector_norm(grad))
    if norm > max_norm:
        grad.mul_(max_norm / (norm + 1e-6))
    return norm
