"""Which networks does an algorithm have? MLPs by name in one flat vector: actor, twin critics, their slow copies.

No torch: forward and backward are fastmlp's kernels, the optimiser is a kernel here. One vector means that an optimiser
step, a norm or a target copy is one call, and a checkpoint names every weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relab.base import limits
from relab.base.documents import Tree
from relab.config.base import require
from relab.train.kernels.jit import njit
from relab.train.nets.fastmlp import SUMS, Layout
from relab.train.nets.networks import mlp_shapes, orthogonal

f32 = np.float32


class Networks:
    """name -> sizes (in, hidden..., out); weights orthogonal, the last layer's times `last[name]` (1), biases zero."""

    def __init__(
        self,
        sizes: Mapping[str, Sequence[int]],
        activation: str,
        rng: np.random.Generator,
        last: Mapping[str, float] | None = None,
    ):
        shapes = {name: mlp_shapes(name, tuple(each)) for name, each in sizes.items()}
        total = sum(int(np.prod(shape)) for part in shapes.values() for shape in part.values())
        require(total <= limits.WEIGHTS, f"an agent must have at most {limits.WEIGHTS:,} weights, but `hidden` and what"
                f" it observes make {total:,}; use smaller layers, or observe less")  # fmt: skip
        self.flat = np.zeros(total, np.float32)
        self.named: dict[str, np.ndarray] = {}
        self.layouts: dict[str, Layout] = {}
        at = 0
        for name, part in shapes.items():
            starts = {}
            for key, shape in part.items():
                size = int(np.prod(shape))
                self.named[key], starts[key], at = self.flat[at : at + size].reshape(shape), at, at + size
            self.layouts[name] = _layout(name, tuple(sizes[name]), starts, activation == "relu")
            self._draw(name, len(sizes[name]) - 2, rng, (last or {}).get(name, 1.0))

    def _draw(self, name: str, depth: int, rng: np.random.Generator, last: float) -> None:
        for layer in range(depth + 1):
            weight = self.named[f"{name}/{layer}/weight"]
            weight[:] = orthogonal(rng, *weight.shape) * (last if layer == depth else 2.0**0.5)

    def part(self, *names: str) -> slice:
        """Where the networks of these names lie in the flat vector, which are neighbours."""
        at = [self.layouts[name].weight[0] for name in names]
        ends = [int(self.layouts[name].bias[-1] + self.layouts[name].sizes[-1]) for name in names]
        return slice(int(min(at)), max(ends))

    def load(self, values: Mapping[str, np.ndarray]) -> None:
        """Copy values in by name, all or none; a missing name or another shape is an error with both shapes."""
        for name, array in self.named.items():
            shape = values[name].shape if name in values else None
            if shape != array.shape:
                raise ValueError(f"parameter `{name}` has shape {array.shape} by the config, but the checkpoint holds"
                                 f" {shape}; `hidden` or the environment changed")  # fmt: skip
        for name, array in self.named.items():
            array[:] = values[name]


def _layout(name: str, sizes: tuple[int, ...], starts: Mapping[str, int], relu: bool) -> Layout:
    layers = range(len(sizes) - 1)
    weight, bias = ([starts[f"{name}/{i}/{part}"] for i in layers] for part in ("weight", "bias"))
    return Layout(np.array(sizes, np.int64), np.array(weight, np.int64), np.array(bias, np.int64), relu)


class Adam:
    """Kingma & Ba 2015 on a part of a flat vector: theta -= lr m_hat / (sqrt(v_hat) + eps)."""

    def __init__(self, size: int, eps: float = 1e-8, betas: tuple[float, float] = (0.9, 0.999)):
        self.m, self.v = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.updates, self.eps, self.betas = 0, eps, betas

    def step(self, theta: np.ndarray, grad: np.ndarray, lr: float, max_norm: float = np.inf) -> float:
        """One step, the gradient's norm cut to `max_norm`; the norm before."""
        return adam_step(theta, grad, self.m, self.v, *self.count(lr), max_norm)

    def count(self, lr: float) -> tuple[int, float, float, float, float]:
        """One more step: what `adam_step` needs for it, (updates, lr, b1, b2, eps)."""
        self.updates += 1
        return self.updates, lr, *self.betas, self.eps

    def norm(self, grad: np.ndarray) -> float:
        return float(norm_of(grad))

    def to_tree(self) -> Tree:
        return {"m": self.m, "v": self.v, "updates": self.updates}

    def load(self, tree: Mapping[str, Any]) -> None:
        self.m[:], self.v[:], self.updates = tree["m"], tree["v"], int(tree["updates"])


@njit(cache=True, nogil=True, error_model="numpy")  # a check for division by zero would keep it from using SIMD
def adam_step(theta, grad, m, v, updates, lr, b1, b2, eps, max_norm):
    """Update number `updates` (the first is 1); returns the gradient's norm before it is cut."""
    norm = norm_of(grad)
    cut = f32(max_norm / (norm + 1e-6)) if norm > max_norm else f32(1.0)
    a, b, c, d = f32(b1), f32(1.0 - b1), f32(b2), f32(1.0 - b2)
    scale, root, eps = f32(lr / (1.0 - b1**updates)), f32(np.sqrt(1.0 - b2**updates)), f32(eps)
    for i in range(grad.size):
        g = grad[i] * cut
        m[i] = a * m[i] + b * g
        v[i] = c * v[i] + d * g * g
        theta[i] -= scale * m[i] / (np.sqrt(v[i]) / root + eps)
    return norm


@njit(cache=True, nogil=True, fastmath=SUMS)
def norm_of(x):
    """Euclidean norm, summed in float64."""
    total = 0.0
    for i in range(x.size):
        total += np.float64(x[i]) * np.float64(x[i])
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def follow(target, theta, tau):
    """target += tau (theta - target); a copy at tau = 1."""
    t = f32(tau)
    for i in range(target.size):
        target[i] = theta[i] if tau == 1.0 else target[i] + t * (theta[i] - target[i])
