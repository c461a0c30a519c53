"""How do Dreamer's heads compute fast on a CPU? Layers of weights, normalisation and SiLU, forward and back by hand.

Same function as layers.mlp and layers.head (tests hold values and gradients against autograd). To torch a whole head is
one operation; the gradients of its weights are added to the flat gradient directly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import rows
from relab.train.kernels.blas import AS_IS, TURNED, gemm
from relab.train.kernels.jit import njit
from relab.train.nets.networks import Params

f32 = np.float32
BLOCK = 128  # rows of one pass: what they leave behind stays in cache


class Layout(NamedTuple):
    """Where a head lies in the flat vector: sizes [in, hidden...], offsets for each layer, and those of the outputs."""

    sizes: np.ndarray
    weight: np.ndarray
    scale: np.ndarray
    bias: np.ndarray
    out: int  # outputs; 0: the last hidden layer is what is asked for
    out_weight: int
    out_bias: int


def offsets(params: Params) -> dict[str, int]:
    """Name -> place of every tensor in the flat vector."""
    places, at = {}, 0
    for name, tensor in params.named.items():
        places[name] = at
        at += tensor.numel()
    return places


def layout(params: Params, name: str) -> Layout:
    at, shapes = offsets(params), {key: tuple(p.shape) for key, p in params.named.items()}
    depth = sum(key.startswith(f"{name}/") and key.endswith("/scale") for key in at)
    sizes = [shapes[f"{name}/0/weight"][1], *(shapes[f"{name}/{i}/weight"][0] for i in range(depth))]
    weight, scale, bias = (
        np.array([at[f"{name}/{i}/{part}"] for i in range(depth)]) for part in ("weight", "scale", "bias")
    )
    last = f"{name}/out"
    has = f"{last}/weight" in at
    out = (shapes[f"{last}/weight"][0], at[f"{last}/weight"], at[f"{last}/bias"]) if has else (0, 0, 0)
    return Layout(np.array(sizes), weight, scale, bias, *out)


@njit(cache=True, nogil=True)
def room(net):
    """Numbers that are kept for a row: of each layer its normalised numbers, their rate, its outputs."""
    return 2 * net.sizes[1:].sum() + net.weight.size


@njit(cache=True, nogil=True)
def forward(theta, net, x, ldx, n, work, keep, out):
    """Outputs of n rows into `out` [n, out]; `keep`: `work` has room for all rows, and `backward` will want them."""
    width = net.out if net.out else net.sizes[-1]
    for start in range(0, n, BLOCK):
        m, at = min(BLOCK, n - start), start * room(net) if keep else 0
        forward_block(theta, net, x[start * ldx :], ldx, m, work[at:], out[start * width :])


@njit(cache=True, nogil=True)
def forward_block(theta, net, x, ldx, n, work, out):
    below, ld, at = x, ldx, 0
    for k in range(net.weight.size):
        n_in, width = net.sizes[k], net.sizes[k + 1]
        here, rate = work[at : at + n * width], work[at + n * width : at + n * (width + 1)]
        y = work[at + n * (width + 1) : at + n * (2 * width + 1)]
        scale, bias = theta[net.scale[k] : net.scale[k] + width], theta[net.bias[k] : net.bias[k] + width]
        gemm(below, ld, AS_IS, theta[net.weight[k] :], n_in, TURNED, here, width, n, width, n_in, f32(0.0))
        rows.normalise(here, n, width, rate)
        if net.out == 0 and k == net.weight.size - 1:
            y = out
        rows.scaled_silu(here, n, width, scale, bias, y, width)
        below, ld, at = y, width, at + n * (2 * width + 1)
    if net.out:
        gemm(below, ld, AS_IS, theta[net.out_weight :], ld, TURNED, out, net.out, n, net.out, ld, f32(0.0))
        rows.add_bias(out, n, net.out, theta[net.out_bias : net.out_bias + net.out])


@njit(cache=True, nogil=True)
def backward(theta, net, x, ldx, n, work, d_out, grad, d_x):
    """Add dL/dtheta to `grad`, given dL/dout [n, out]; dL/dx into d_x [n, in] unless that is empty."""
    width, n_in = net.out if net.out else net.sizes[-1], net.sizes[0]
    spare = np.empty(2 * min(n, BLOCK) * net.sizes.max(), f32)
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        down = d_x[start * n_in :] if d_x.size else d_x
        backward_block(theta, net, x[start * ldx :], ldx, m, work[start * room(net) :], d_out[start * width :], grad,
                       down, spare)  # fmt: skip


@njit(cache=True, nogil=True)
def backward_block(theta, net, x, ldx, n, work, d_out, grad, d_x, spare):
    one, depth, middle = f32(1.0), net.weight.size, spare.size // 2
    delta, at = d_out, 0
    for k in range(depth):
        at += n * (2 * net.sizes[k + 1] + 1)
    if net.out:
        width = net.sizes[depth]
        y = work[at - n * width : at]
        gemm(d_out, net.out, TURNED, y, width, AS_IS, grad[net.out_weight :], width, net.out, width, n, one)
        rows.add_column_sums(d_out, n, net.out, grad[net.out_bias : net.out_bias + net.out])
        delta = spare[: n * width]
        gemm(d_out, net.out, AS_IS, theta[net.out_weight :], width, AS_IS, delta, width, n, width, net.out, f32(0.0))
    for k in range(depth - 1, -1, -1):
        n_in, width = net.sizes[k], net.sizes[k + 1]
        at -= n * (2 * width + 1)
        here, rate = work[at : at + n * width], work[at + n * width : at + n * (width + 1)]
        s, b = net.scale[k], net.bias[k]
        down = spare[middle : middle + n * width]
        rows.scaled_silu_back(delta, width, here, n, width, theta[s : s + width], theta[b : b + width],
                              grad[s : s + width], grad[b : b + width], down)  # fmt: skip
        rows.normalise_back(down, here, n, width, rate)
        below, ld = (x, ldx) if k == 0 else (work[at - n * n_in : at], n_in)
        gemm(down, width, TURNED, below, ld, AS_IS, grad[net.weight[k] :], n_in, width, n_in, n, one)
        if k > 0 or d_x.size:
            delta = spare[: n * n_in] if k > 0 else d_x
            gemm(down, width, AS_IS, theta[net.weight[k] :], n_in, AS_IS, delta, n_in, n, n_in, width, f32(0.0))


class Head(torch.autograd.Function):
    """`forward` and `backward` as one operation. `anchor` is a weight: it makes torch ask for gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, params: Params, net: Layout) -> Tensor:
        n_in, width = int(net.sizes[0]), net.out or int(net.sizes[-1])
        flat = x.detach().contiguous()
        n = flat.numel() // n_in
        keep = any(ctx.needs_input_grad)
        work, out = np.empty(room(net) * (n if keep else BLOCK), f32), torch.empty(*x.shape[:-1], width)
        forward(params.flat.numpy(), net, flat.numpy().reshape(-1), n_in, n, work, keep, out.numpy().reshape(-1))
        ctx.facts = flat, work, params, net, n
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, None, None, None]:
        x, work, params, net, n = ctx.facts
        d_x = torch.empty_like(x) if ctx.needs_input_grad[0] else torch.empty(0)
        backward(params.flat.numpy(), net, x.numpy().reshape(-1), int(net.sizes[0]), n, work,
                 d_out.contiguous().numpy().reshape(-1), params.grad.numpy(), d_x.numpy().reshape(-1))  # fmt: skip
        return d_x if ctx.needs_input_grad[0] else None, None, None, None
