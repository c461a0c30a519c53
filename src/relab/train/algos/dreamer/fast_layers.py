"""How do Dreamer's heads compute fast on a CPU? Layers of weights, normalisation and SiLU, forward and back by hand.

Same function as layers.mlp and layers.head (tests hold values and gradients against autograd). To torch a whole head is
one operation; the gradients of its weights are added to the flat gradient directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import one_hot, rows
from relab.train.algos.dreamer.one_hot import Hot
from relab.train.kernels.blas import AS_IS, TURNED, gemm
from relab.train.kernels.jit import njit
from relab.train.nets.networks import Params

if TYPE_CHECKING:
    from relab.train.algos.dreamer.layers import Weights

f32 = np.float32
BLOCK = 128  # rows of one pass: what they leave behind stays in cache
SHARES = 2  # of the rows, summed apart: two threads can work side by side, and one adds up in the same order


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
def forward(theta, net, x, ldx, n, work, keep, out, hot, turned):
    """Outputs of n rows into `out` [n, out]; `keep`: `work` has room for all rows, and `backward` will want them.

    `hot`, `turned`: as one_hot.py makes them, where the last inputs are one-hot; else empty.
    """
    width, S = net.out if net.out else net.sizes[-1], hot.size // n
    for start in range(0, n, BLOCK):
        m, at = min(BLOCK, n - start), start * room(net) if keep else 0
        forward_block(theta, net, x[start * ldx :], ldx, m, work[at:], out[start * width :],
                      hot[start * S : (start + m) * S], turned)  # fmt: skip


@njit(cache=True, nogil=True)
def forward_block(theta, net, x, ldx, n, work, out, hot, turned):
    below, ld, at = x, ldx, 0
    for k in range(net.weight.size):
        n_in, width = net.sizes[k], net.sizes[k + 1]
        here, rate = work[at : at + n * width], work[at + n * width : at + n * (width + 1)]
        y = work[at + n * (width + 1) : at + n * (2 * width + 1)]
        scale, bias = theta[net.scale[k] : net.scale[k] + width], theta[net.bias[k] : net.bias[k] + width]
        dense = n_in if k > 0 else n_in - turned.size // width
        gemm(below, ld, AS_IS, theta[net.weight[k] :], n_in, TURNED, here, width, n, width, dense, f32(0.0))
        if dense < n_in:
            one_hot.add(here, n, width, hot, turned)
        rows.normalise(here, n, width, rate)
        if net.out == 0 and k == net.weight.size - 1:
            y = out
        rows.scaled_silu(here, n, width, scale, bias, y, width)
        below, ld, at = y, width, at + n * (2 * width + 1)
    if net.out:
        gemm(below, ld, AS_IS, theta[net.out_weight :], ld, TURNED, out, net.out, n, net.out, ld, f32(0.0))
        rows.add_bias(out, n, net.out, theta[net.out_bias : net.out_bias + net.out])


@njit(cache=True, nogil=True)
def backward(theta, net, x, ldx, n, work, d_out, grad, d_x, hot, d_turned):
    """Add dL/dtheta to `grad`, given dL/dout [n, out]; dL/dx into d_x [n, in] unless that is empty.

    Where the last inputs are one-hot, their weights' gradients are added to `d_turned`, and none go on to x.
    """
    width, n_in, S = net.out if net.out else net.sizes[-1], net.sizes[0], hot.size // n
    spare = np.empty(2 * min(n, BLOCK) * net.sizes.max(), f32)
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        down = d_x[start * n_in :] if d_x.size else d_x
        backward_block(theta, net, x[start * ldx :], ldx, m, work[start * room(net) :], d_out[start * width :], grad,
                       down, spare, hot[start * S : (start + m) * S], d_turned)  # fmt: skip


@njit(cache=True, nogil=True)
def backward_block(theta, net, x, ldx, n, work, d_out, grad, d_x, spare, hot, d_turned):
    one, depth, second = f32(1.0), net.weight.size, spare.size // 2
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
        down = spare[second : second + n * width]
        rows.scaled_silu_back(delta, width, here, n, width, theta[s : s + width], theta[b : b + width],
                              grad[s : s + width], grad[b : b + width], down)  # fmt: skip
        rows.normalise_back(down, here, n, width, rate)
        below, ld = (x, ldx) if k == 0 else (work[at - n * n_in : at], n_in)
        dense = n_in if k > 0 else n_in - d_turned.size // width
        gemm(down, width, TURNED, below, ld, AS_IS, grad[net.weight[k] :], n_in, width, dense, n, one)
        if dense < n_in:
            one_hot.scatter(down, n, width, hot, d_turned)
        if k > 0 or d_x.size:
            delta = spare[: n * n_in] if k > 0 else d_x
            gemm(down, width, AS_IS, theta[net.weight[k] :], n_in, AS_IS, delta, n_in, n, n_in, width, f32(0.0))


@njit(cache=True, nogil=True)
def backward_steps(theta, net, x, H, N, first, n, work, d_out, grad, hot, d_turned):
    """`backward` of rows `first` to first + n of each of H steps of N rows; nothing goes on to x."""
    n_in, each, none, S = net.sizes[0], room(net), np.empty(0, f32), hot.size // ((H + 1) * N)
    for t in range(H):
        row = t * N + first
        backward(theta, net, x[row * n_in :], n_in, n, work[row * each :], d_out[row * net.out :], grad, none,
                 hot[row * S : (row + n) * S], d_turned)  # fmt: skip


def share_rows(params: Weights, n: int, cut: int, work: Callable[[int, int, int], None]) -> None:
    """work(share, first row, rows) for the rows before `cut` and those after it, side by side if there is a thread."""
    if cut == n:
        work(0, 0, n)
    else:
        params.crew.both(lambda k: work(k, (0, cut)[k], (cut, n - cut)[k]))


def middle(n: int) -> int:
    """Where n rows are cut into two shares of whole blocks; one block is not worth a second thread."""
    return min(n, (-(-n // BLOCK) + 1) // 2 * BLOCK)


class Gradients:
    """Where each half of the rows adds the gradient of a head; `join` makes one of both."""

    def __init__(self, params: Weights, net: Layout, hot: int):
        self.params, self.net = params, net
        self.of = params.grad.numpy(), params.second
        self.turned = np.zeros((SHARES, hot * int(net.sizes[1])), f32)  # of the one-hot inputs' weights

    def join(self) -> None:
        """A head's tensors lie side by side."""
        net, (whole, second) = self.net, self.of
        first, end = net.weight[0], net.out_bias + net.out if net.out else net.bias[-1] + net.sizes[-1]
        whole[first:end] += second[first:end]
        second[first:end] = 0.0
        width, n_in, hot = int(net.sizes[1]), int(net.sizes[0]), self.turned.shape[1] // int(net.sizes[1])
        if hot:
            weight = whole[first : first + width * n_in].reshape(width, n_in)
            weight[:, n_in - hot :] += (self.turned[0] + self.turned[1]).reshape(hot, width).T


def turned_of(params: Weights, net: Layout, hot: int) -> np.ndarray:
    """The weights of a head's last `hot` inputs [hot, units], so that those of one input lie side by side."""
    width, n_in, first = int(net.sizes[1]), int(net.sizes[0]), int(net.weight[0])
    weight = params.flat.numpy()[first : first + width * n_in].reshape(width, n_in)
    return np.ascontiguousarray(weight[:, n_in - hot :].T).reshape(-1)


class Head(torch.autograd.Function):
    """`forward` and `backward` as one operation. `anchor` is a weight: it makes torch ask for gradients.

    `hot` [..., S]: which of the last `size` inputs are 1, where those are one-hot; no gradient goes on to x then.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, params: Weights, net: Layout, hot: Hot) -> Tensor:
        n_in, width, keep = int(net.sizes[0]), net.out or int(net.sizes[-1]), any(ctx.needs_input_grad)
        flat, result = x.detach().contiguous(), torch.empty(*x.shape[:-1], width)
        theta, rows_, out = params.flat.numpy(), flat.numpy().reshape(-1), result.numpy().reshape(-1)
        n, each, turned = flat.numel() // n_in, room(net), turned_of(params, net, hot.size)
        work, S = np.empty(each * (n if keep else SHARES * BLOCK), f32), hot.stoch

        def share(k: int, first: int, m: int) -> None:
            at = (first if keep else k * BLOCK) * each
            forward(theta, net, rows_[first * n_in :], n_in, m, work[at:], keep, out[first * width :],
                    hot.ones[first * S : (first + m) * S], turned)  # fmt: skip

        share_rows(params, n, middle(n), share)
        ctx.facts = flat, work, params, net, n, hot
        return result

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, None, None, None, None]:
        x, work, params, net, n, hot = ctx.facts
        d_x = torch.empty_like(x) if ctx.needs_input_grad[0] else torch.empty(0)
        theta, rows_, up, down = (flat_of(y) for y in (params.flat, x, d_out, d_x))
        n_in, width, each, S = int(net.sizes[0]), net.out or int(net.sizes[-1]), room(net), hot.stoch
        grads = Gradients(params, net, hot.size)

        def share(k: int, first: int, m: int) -> None:
            backward(theta, net, rows_[first * n_in :], n_in, m, work[first * each :], up[first * width :],
                     grads.of[k], down[first * n_in :], hot.ones[first * S : (first + m) * S],
                     grads.turned[k])  # fmt: skip

        share_rows(params, n, middle(n), share)
        grads.join()
        return d_x if ctx.needs_input_grad[0] else None, None, None, None, None


def flat_of(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().numpy().reshape(-1)


class Redone(torch.autograd.Function):
    """A head's outputs [H, N, out] that were computed while dreaming, by halves of N; only the way back is left."""

    @staticmethod
    def forward(
        ctx: Any, out: Tensor, anchor: Tensor, params: Weights, net: Layout, x: Tensor, work: np.ndarray, hot: Hot
    ) -> Tensor:
        ctx.facts = params, net, x, work, hot
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[None, ...]:
        params, net, x, work, hot = ctx.facts
        (H, N, _), theta, grads = d_out.shape, params.flat.numpy(), Gradients(params, net, hot.size)
        rows_, up = flat_of(x), flat_of(d_out)

        def share(k: int, first: int, n: int) -> None:
            backward_steps(theta, net, rows_, H, N, first, n, work, up, grads.of[k], hot.ones, grads.turned[k])

        share_rows(params, N, N - N // 2, share)
        grads.join()
        return (None,) * 7
