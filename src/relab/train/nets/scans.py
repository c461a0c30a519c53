"""How does a minGRU remember? (Feng et al. 2024, *Were RNNs All We Needed?*)  h_t = (1 - z_t) h_{t-1} + z_t g(u_t)

Gates z = sigmoid(.) and candidates g(u) see the input alone, so that the memory is a linear recurrence, h_t = a h_{t-1}
+ b. `scan_loop` takes it step by step; `scan_parallel` in log2 T sweeps over the whole sequence, which pays on a GPU
and for long sequences. Both are in linear space: a scan in log space was half as fast as a GRU in public hands.
"""

from __future__ import annotations

import torch
from torch import Tensor

LONG = 64  # steps from which sweeps are taken on a GPU


def positive(u: Tensor) -> Tensor:
    """g(u) = u + 1/2 for u >= 0, else sigmoid(u): continuous, above 0, not bounded."""
    return torch.where(u >= 0, u + 0.5, torch.sigmoid(u))


def min_gru(gates_TBG: Tensor, memory_BH: Tensor, keep_TB1: Tensor) -> Tensor:
    """Hidden states [T,B,H] from the input's part in both gates [T,B,2H]; keep 0 clears the memory before a step."""
    z_TBH, u_TBH = gates_TBG.chunk(2, dim=-1)
    z_TBH = torch.sigmoid(z_TBH)
    a_TBH, b_TBH = (1.0 - z_TBH) * keep_TB1, z_TBH * positive(u_TBH)
    sweeps = gates_TBG.device.type != "cpu" and len(gates_TBG) >= LONG
    return (scan_parallel if sweeps else scan_loop)(a_TBH, b_TBH, memory_BH)


def scan_loop(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor) -> Tensor:
    """h_t = a_t h_{t-1} + b_t for every t."""
    states = []
    for a_BH, b_BH in zip(a_TBH, b_TBH):
        h_BH = torch.addcmul(b_BH, a_BH, h_BH)
        states.append(h_BH)
    return torch.stack(states)


def scan_parallel(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor) -> Tensor:
    """The same: two steps (a, b), (a', b') in a row are one step (a a', a' b + b'), so each sweep doubles the reach."""
    a, b, reach = a_TBH, torch.cat((torch.addcmul(b_TBH[:1], a_TBH[:1], h_BH), b_TBH[1:])), 1
    while reach < len(a):
        b = torch.cat((b[:reach], torch.addcmul(b[reach:], a[reach:], b[:-reach])))
        a = torch.cat((a[:reach], a[reach:] * a[:-reach]))
        reach *= 2
    return b
