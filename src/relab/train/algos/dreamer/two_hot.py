"""What does a two-hot head say, and how far is it from a target? Kernels of one pass over the bins of each row.

equations.Support says what is computed; torch needs some thirty calls for it, and as many on the way back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import rows
from relab.train.kernels.jit import njit

f32 = np.float32


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def softmax_row(x, out):
    """out = softmax(x); returns ln sum e^x."""
    most = largest(x)
    for j in range(x.size):
        out[j] = rows.exp(x[j] - most)
    total = sum_of(out)
    part = f32(1.0) / total
    for j in range(x.size):
        out[j] *= part
    return most + np.log(total)


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def largest(x):
    """Of numbers none of which is missing: a promise that lets the loop vectorise."""
    most = x[0]
    for j in range(1, x.size):
        most = x[j] if x[j] > most else most
    return most


@njit(cache=True, nogil=True, fastmath=rows.SUMS)
def sum_of(x):
    total = f32(0.0)
    for j in range(x.size):
        total += x[j]
    return total


@njit(cache=True, nogil=True, fastmath=rows.SUMS)
def dot(x, y):
    total = f32(0.0)
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(cache=True, nogil=True)
def means(logits, n, values, out):
    """What heads say: logits [n, bins] -> [n]."""
    bins = values.size
    soft = np.empty(bins, f32)
    for i in range(n):
        softmax_row(logits[i * bins : (i + 1) * bins], soft)
        out[i] = dot(soft, values)


@njit(cache=True, nogil=True)
def bin_above(values, x):
    """The first bin above x, from 1 to the last."""
    low, high = 1, values.size - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def losses(logits, n, values, target, weight, soft, above, share, loss):
    """loss [n] = sum_k weight_k CE(two_hot(target_k)); soft [n, bins], above and share [k, n] are for the way back."""
    bins, K = values.size, weight.size
    for i in range(n):
        x = logits[i * bins : (i + 1) * bins]
        whole = softmax_row(x, soft[i * bins : (i + 1) * bins])
        loss[i] = f32(0.0)
        for k in range(K):
            t = min(max(target[k * n + i], values[0]), values[bins - 1])
            a = bin_above(values, t)
            s = (t - values[a - 1]) / (values[a] - values[a - 1])
            above[k * n + i], share[k * n + i] = a, s
            loss[i] += weight[k] * (whole - (f32(1.0) - s) * x[a - 1] - s * x[a])


@njit(cache=True, nogil=True, fastmath=rows.FUSE)
def losses_back(d_loss, n, bins, weight, soft, above, share):
    """`soft` becomes dL/dlogits."""
    whole, K = weight.sum(), weight.size
    for i in range(n):
        row, d = soft[i * bins : (i + 1) * bins], d_loss[i]
        for j in range(bins):
            row[j] *= d * whole
        for k in range(K):
            a, s = above[k * n + i], share[k * n + i]
            row[a - 1] -= d * weight[k] * (f32(1.0) - s)
            row[a] -= d * weight[k] * s


class Loss(torch.autograd.Function):
    """(logits [..., bins], targets [k, ...]) -> [...]: the weighted cross-entropies of each row, summed."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, values: np.ndarray, weight: np.ndarray) -> Tensor:
        flat, n = logits.detach().contiguous(), logits[..., 0].numel()
        soft, loss = torch.empty_like(flat), torch.empty(logits.shape[:-1])
        above, share = np.empty(n * weight.size, np.int64), np.empty(n * weight.size, f32)
        losses(flat.numpy().reshape(-1), n, values, targets.contiguous().numpy().reshape(-1), weight,
               soft.numpy().reshape(-1), above, share, loss.numpy().reshape(-1))  # fmt: skip
        ctx.facts = soft, above, share, weight, n
        return loss

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor, None, None, None]:
        soft, above, share, weight, n = ctx.facts
        losses_back(d_loss.contiguous().numpy().reshape(-1), n, soft.shape[-1], weight, soft.numpy().reshape(-1), above,
                    share)  # fmt: skip
        return soft, None, None, None
