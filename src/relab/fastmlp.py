"""How fast can a small MLP learn on a CPU? Forward and backward by hand, a cache-sized block of rows at a time.

Same function as nets.mlp (tests hold the gradients against autograd). Two things make it fast: no graph is built, and
tanh is a rational function that the compiler vectorises: on AVX2 torch.tanh costs as much as two 64x64 layers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from relab.jit import njit

f32 = np.float32


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def tanh_rows(x):
    """tanh in place by Lambert's continued fraction x/(1 + x²/(3 + x²/(5 + ...))), eleven levels; error under 1e-6."""
    flat = x.reshape(-1)
    for i in range(flat.size):
        v = flat[i]
        v = f32(7.9) if v > f32(7.9) else v
        v = f32(-7.9) if v < f32(-7.9) else v
        y = v * v
        p = f32(13749310575.0) + y * (
            f32(1964187225.0) + y * (f32(64324260.0) + y * (f32(675675.0) + y * (f32(2145.0) + y)))
        )
        q = f32(13749310575.0) + y * (
            f32(6547290750.0) + y * (f32(413513100.0) + y * (f32(7567560.0) + y * (f32(45045.0) + y * f32(66.0))))
        )
        h = v * p / q
        h = f32(1.0) if h > f32(1.0) else h
        flat[i] = f32(-1.0) if h < f32(-1.0) else h


@njit(cache=True, nogil=True, fastmath=True)
def tanh_back_rows(d, h):
    """d *= 1 - h²: the derivative of tanh from its own output."""
    d_flat, h_flat = d.reshape(-1), h.reshape(-1)
    for i in range(d_flat.size):
        d_flat[i] *= f32(1.0) - h_flat[i] * h_flat[i]


@njit(cache=True, nogil=True)
def relu_back_rows(d, h):
    d_flat, h_flat = d.reshape(-1), h.reshape(-1)
    for i in range(d_flat.size):
        if h_flat[i] <= f32(0.0):
            d_flat[i] = f32(0.0)


class FastMLP:
    """One MLP over at most `rows` rows; weights are read through views, so the caller may update them in between."""

    def __init__(self, weights: list[Tensor], biases: list[Tensor], rows: int, activation: str):
        self.weights, self.biases = [w.detach() for w in weights], [b.detach() for b in biases]
        self.activation = activation
        self.wt = [w.t() for w in self.weights]
        self.outs = [torch.empty(rows, w.shape[0]) for w in self.weights]
        self.deltas = [torch.empty(rows, w.shape[0]) for w in self.weights[:-1]]
        self.outs_np, self.deltas_np = [o.numpy() for o in self.outs], [d.numpy() for d in self.deltas]

    def forward(self, x: Tensor) -> Tensor:
        """[n, in] -> [n, out], a view that the next call overwrites; keeps the activations for `backward`."""
        n, last = x.shape[0], len(self.weights) - 1
        for i, (wt, b, out) in enumerate(zip(self.wt, self.biases, self.outs)):
            x = torch.addmm(b, x, wt, out=out[:n])
            if i < last:
                tanh_rows(self.outs_np[i][:n]) if self.activation == "tanh" else x.relu_()
        return x

    def backward(self, x: Tensor, d_out: Tensor, grads: list[tuple[Tensor, Tensor]]) -> None:
        """Write dL/dW and dL/db of every layer into `grads`, given dL/d(out) of the rows of the last `forward`."""
        n, delta = x.shape[0], d_out
        for i in range(len(self.weights) - 1, -1, -1):
            below = self.outs[i - 1][:n] if i else x
            torch.mm(delta.t(), below, out=grads[i][0])
            torch.sum(delta, 0, out=grads[i][1])
            if i:
                delta = torch.mm(delta, self.weights[i], out=self.deltas[i - 1][:n])
                back = tanh_back_rows if self.activation == "tanh" else relu_back_rows
                back(self.deltas_np[i - 1][:n], self.outs_np[i - 1][:n])
