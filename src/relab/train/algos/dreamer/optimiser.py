"""How do Dreamer's gradients become steps? Each tensor clipped against its own size, then LaProp, with a warm-up.

Adaptive clipping (Brock et al. 2021): |g| <= clip * max(1e-3, |theta|) for every tensor by itself.
LaProp (Ziyin et al. 2020): v follows g²; the momentum follows g / sqrt(v), each gradient scaled as it comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from relab.base.documents import Tree
from relab.train.algos.dreamer.rows import FUSE, SUMS
from relab.train.kernels.jit import njit
from relab.train.nets.networks import Params

f32 = np.float32
PARTS = ("model", "actor", "critic")  # first words of the tensors' names
EPS = f32(1e-20)
LEAST_NORM = f32(1e-3)  # of a tensor, as clipping counts it: one that begins at zero may move


class LaProp:
    """m, v over one flat vector; the learning rate may differ from tensor to tensor."""

    def __init__(self, params: Params, lr: Mapping[str, float], clip: float, warmup: int, betas: tuple[float, float]):
        self.params, self.clip, self.warmup, self.betas = params, clip, warmup, betas
        self.m, self.v = torch.zeros_like(params.flat), torch.zeros_like(params.flat)
        self.ends = np.cumsum([p.numel() for p in params.named.values()])
        self.group = np.array([PARTS.index(name.split("/")[0]) for name in params.named])
        self.lr = np.array([lr[part] for part in PARTS], np.float32)
        self.updates = np.zeros(len(PARTS), np.int64)  # of each part: one that rests keeps its momentum and its age

    def step(self, turn: Mapping[str, float]) -> float:
        """One step from the flat gradient, which is then zero; the gradient's norm before clipping.

        `turn`: how much of its step each part takes; where it is 0 nothing of the part changes.
        """
        p, (b1, b2) = self.params, self.betas
        share = np.array([turn[part] for part in PARTS])
        self.updates += share > 0
        n = np.maximum(self.updates, 1)
        pace, unbias = share * self.rise(n) * self.lr / (1 - b1**n), 1 / (1 - b2**n)
        square = take_step(p.flat.numpy(), p.grad.numpy(), self.m.numpy(), self.v.numpy(), self.ends, self.group,
                           pace.astype(f32), unbias.astype(f32), f32(self.clip), f32(b1), f32(b2))  # fmt: skip
        return math.sqrt(square)

    def rise(self, updates: np.ndarray) -> np.ndarray:
        """Share of the step size that a part takes in its nth update: it warms up."""
        return np.minimum(1.0, updates / self.warmup) if self.warmup else np.ones(len(updates))

    def warmth(self, part: str) -> float:
        """The same of the part's last update; 0 before the first, where it warms up."""
        return float(self.rise(self.updates)[PARTS.index(part)])

    def to_tree(self) -> Tree:
        return {"m": self.m, "v": self.v, "updates": self.updates}

    def load(self, tree: Mapping[str, Any]) -> None:
        self.m.copy_(torch.from_numpy(tree["m"]))
        self.v.copy_(torch.from_numpy(tree["v"]))
        self.updates[:] = tree["updates"]


@njit(cache=True, nogil=True, fastmath=SUMS)
def square_of(x):
    total = f32(0.0)
    for j in range(x.size):
        total += x[j] * x[j]
    return total


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def move(theta, grad, m, v, factor, b1, b2, unbias, pace):
    """One tensor's step; its gradient is then zero."""
    for j in range(theta.size):
        g = grad[j] * factor
        v[j] = b2 * v[j] + (f32(1.0) - b2) * g * g
        m[j] += (f32(1.0) - b1) * (g / (np.sqrt(v[j] * unbias) + EPS) - m[j])
        theta[j] -= pace * m[j]
    grad.fill(f32(0.0))


@njit(cache=True, nogil=True)
def take_step(theta, grad, m, v, ends, group, pace, unbias, clip, b1, b2):
    """Every tensor clipped against its own norm, then moved; the squared norm of the whole gradient."""
    at, whole = 0, 0.0
    for k in range(ends.size):
        end, part = ends[k], group[k]
        if pace[part] == 0:
            grad[at:end].fill(f32(0.0))
            at = end
            continue
        square, size = square_of(grad[at:end]), np.sqrt(square_of(theta[at:end]))
        whole += square
        limit, norm = clip * max(size, LEAST_NORM), np.sqrt(square)
        factor = limit / norm if clip > 0 and norm > limit else f32(1.0)
        move(theta[at:end], grad[at:end], m[at:end], v[at:end], factor, b1, b2, unbias[part], pace[part])
        at = end
    return whole
