"""How probable was a choice, and how open was the choosing? One pass over each row, and the way back.

    p = (1 - mix) softmax(x) + mix / n,   ln p_a,   H = -sum p ln p

Actions.judge says what is computed; torch's softmax along two numbers takes longer than all the rest of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from relab.train.kernels.jit import njit

f32 = np.float32
LEAST = f32(1e-37)  # probability that is told apart from none


@njit(cache=True, nogil=True)
def log(p):
    return np.log(max(p, LEAST))


@njit(cache=True, nogil=True)
def judge_rows(out, action, sizes, mix, n, soft, logp, nats):
    """logp, nats [n] of choices [n, kinds] by outputs [n, sum of sizes]; soft = softmax of each kind."""
    keep, at = f32(1.0) - f32(mix), 0
    for i in range(n):
        logp[i], nats[i] = f32(0.0), f32(0.0)
        for k in range(sizes.size):
            x, s = out[at : at + sizes[k]], soft[at : at + sizes[k]]
            most, total, even = x.max(), f32(0.0), f32(mix) / f32(sizes[k])
            for c in range(x.size):
                s[c] = np.exp(x[c] - most)
                total += s[c]
            for c in range(x.size):
                s[c] /= total
                p = keep * s[c] + even
                nats[i] -= p * log(p)
            logp[i] += log(keep * s[action[i * sizes.size + k]] + even)
            at += sizes[k]


@njit(cache=True, nogil=True)
def judge_back(d_logp, d_nats, action, sizes, mix, n, soft, d_out):
    """dL/dout from dL/dlogp and dL/dnats [n]."""
    keep, at = f32(1.0) - f32(mix), 0
    for i in range(n):
        for k in range(sizes.size):
            s, d, even, inner = soft[at : at + sizes[k]], d_out[at : at + sizes[k]], f32(mix) / f32(sizes[k]), f32(0.0)
            for c in range(s.size):
                d[c] = -d_nats[i] * (log(keep * s[c] + even) + f32(1.0))  # dL/dp
            a = action[i * sizes.size + k]
            d[a] += d_logp[i] / max(keep * s[a] + even, LEAST)
            for c in range(s.size):
                inner += d[c] * s[c]
            for c in range(s.size):
                d[c] = keep * s[c] * (d[c] - inner)
            at += sizes[k]


class Judge(torch.autograd.Function):
    """(outputs [..., sum of sizes], choices [..., kinds]) -> (ln p, entropy) [...]."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, action: Tensor, sizes: tuple[int, ...], mix: float) -> tuple[Tensor, Tensor]:
        shape, each = out.shape[:-1], np.array(sizes, np.int64)
        chosen, soft = action.contiguous().numpy().reshape(-1), np.empty(out.numel(), f32)
        logp, nats = torch.empty(shape), torch.empty(shape)
        judge_rows(out.detach().contiguous().numpy().reshape(-1), chosen, each, mix, logp.numel(), soft,
                   logp.numpy().reshape(-1), nats.numpy().reshape(-1))  # fmt: skip
        ctx.facts = chosen, each, mix, soft, out.shape
        return logp, nats

    @staticmethod
    def backward(ctx: Any, d_logp: Tensor, d_nats: Tensor) -> tuple[Tensor, None, None, None]:
        chosen, each, mix, soft, shape = ctx.facts
        d_out, up = torch.empty(shape), [d.contiguous().numpy().reshape(-1) for d in (d_logp, d_nats)]
        judge_back(*up, chosen, each, mix, d_logp.numel(), soft, d_out.numpy().reshape(-1))  # type: ignore[call-arg]
        return d_out, None, None, None
