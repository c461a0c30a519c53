"""How fast can a small MLP learn on a CPU? Forward and backward by hand, a cache-sized block of rows at a time.

Same function as nets.mlp (tests hold the gradients against autograd). Three things make it fast: no graph is built, a
block is one call without the interpreter's lock, and tanh is a rational function that the compiler vectorises (on AVX2
torch.tanh costs as much as two 64x64 layers).

A network is a `Layout` into the flat parameter vector. `work` is one flat float32 buffer per thread: activations of all
layers one after another, then two buffers for deltas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.train.kernels.blas import AS_IS, TURNED, matmul
from relab.train.kernels.jit import njit
from relab.train.nets.networks import Net, shapes

f32 = np.float32
FEW = 8  # rows, or inputs, up to which plain loops are faster than a call of BLAS
SUMS = {"contract", "reassoc"}  # a sum may be taken in another order: it is eight sums side by side then
FUSE = {"contract"}  # all of fastmath was slower, turned NaN into 1, and gave other bits in a row's last columns


class Layout(NamedTuple):
    """Where an MLP's numbers are: sizes [in, hidden..., out], and offsets of weights [out,in] and biases per layer."""

    sizes: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    relu: bool


def layout(net: Net, name: str) -> Layout:
    """Offsets of the MLP `actor` or `critic` in the flat vector of a feed-forward net."""
    offsets, at = {}, 0
    for key, shape in shapes(net).items():
        offsets[key] = at
        at += int(np.prod(shape))
    sizes = np.array((net.obs_dim, *net.layers(name), net.out_dim if name == "actor" else 1), np.int64)
    parts = [[offsets[f"{name}/{i}/{part}"] for i in range(len(sizes) - 1)] for part in ("weight", "bias")]
    return Layout(sizes, np.array(parts[0], np.int64), np.array(parts[1], np.int64), net.activation == "relu")


def workspace(rows: int, *nets: Layout) -> np.ndarray:
    """A buffer for up to `rows` rows of any of these networks."""
    return np.zeros(rows * max(int(net.sizes[1:].sum() + 2 * net.sizes.max()) for net in nets), np.float32)


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def tanh_rows(x_NH, bias_H):
    """x = tanh(x + bias) in place, by Lambert's continued fraction x/(1 + x²/(3 + x²/(5 + ...))), eleven levels.

    The error is under 1e-6 everywhere.
    """
    for i in range(x_NH.shape[0]):
        for j in range(x_NH.shape[1]):
            v = x_NH[i, j] + bias_H[j]
            v = f32(7.9) if v > f32(7.9) else v
            v = f32(-7.9) if v < f32(-7.9) else v
            y = v * v
            p = f32(1964187225.0) + y * (f32(64324260.0) + y * (f32(675675.0) + y * (f32(2145.0) + y)))
            q = f32(413513100.0) + y * (f32(7567560.0) + y * (f32(45045.0) + y * f32(66.0)))
            h = v * (f32(13749310575.0) + y * p) / (f32(13749310575.0) + y * (f32(6547290750.0) + y * q))
            h = f32(1.0) if h > f32(1.0) else h
            x_NH[i, j] = f32(-1.0) if h < f32(-1.0) else h


@njit(cache=True, nogil=True)
def relu_rows(x_NH, bias_H):
    for i in range(x_NH.shape[0]):
        for j in range(x_NH.shape[1]):
            v = x_NH[i, j] + bias_H[j]
            x_NH[i, j] = f32(0.0) if v < f32(0.0) else v  # NaN stays NaN


@njit(cache=True, nogil=True)
def add_rows(x_NH, bias_H):
    for i in range(x_NH.shape[0]):
        for j in range(x_NH.shape[1]):
            x_NH[i, j] += bias_H[j]


@njit(cache=True, nogil=True, fastmath=FUSE)
def tanh_back_rows(d_NH, h_NH):
    """d *= 1 - h²: the derivative of tanh from its own output."""
    for i in range(d_NH.shape[0]):
        for j in range(d_NH.shape[1]):
            d_NH[i, j] *= f32(1.0) - h_NH[i, j] * h_NH[i, j]


@njit(cache=True, nogil=True)
def relu_back_rows(d_NH, h_NH):
    for i in range(d_NH.shape[0]):
        for j in range(d_NH.shape[1]):
            if h_NH[i, j] <= f32(0.0):
                d_NH[i, j] = f32(0.0)


@njit(cache=True, nogil=True)
def sum_rows(d_NH, out_H):
    out_H[:] = f32(0.0)
    for i in range(d_NH.shape[0]):
        for j in range(d_NH.shape[1]):
            out_H[j] += d_NH[i, j]


@njit(cache=True, nogil=True, fastmath=SUMS)
def few_rows(x, weight, out, n, rows_out, rows_in):
    """out [n,out] = x [n,in] weight^T for a handful of rows, where a call of BLAS costs more than the sums."""
    for j in range(rows_out):
        for i in range(n):
            total = f32(0.0)
            for k in range(rows_in):
                total += x[i * rows_in + k] * weight[j * rows_in + k]
            out[i * rows_out + j] = total


@njit(cache=True, nogil=True)
def narrow_gradient(delta, x, grad, n, rows_out, rows_in):
    """grad [out,in] = delta^T x for a few inputs, for which BLAS has no good way."""
    room = np.zeros(rows_in * rows_out, f32)  # [in,out]: neighbours in memory are summed side by side
    for i in range(n):
        for k in range(rows_in):
            x_ik = x[i * rows_in + k]
            for j in range(rows_out):
                room[k * rows_out + j] += x_ik * delta[i * rows_out + j]
    for j in range(rows_out):
        for k in range(rows_in):
            grad[j * rows_in + k] = room[k * rows_out + j]


@njit(cache=True, nogil=True)
def widest(net):
    """Units of the widest layer; sizes.max() would take half a second to compile."""
    most = net.sizes[0]
    for layer in range(1, net.sizes.size):
        most = max(most, net.sizes[layer])
    return most


@njit(cache=True, nogil=True)
def forward(theta, net, x_flat, n, work):
    """Outputs [n, out] for n rows x_flat [n * in]: a view into `work`, which keeps the activations for `backward`."""
    below, at, last = x_flat, 0, net.sizes.size - 2
    for layer in range(last + 1):
        rows_in, rows_out = net.sizes[layer], net.sizes[layer + 1]
        here = work[at : at + n * rows_out]
        weight = theta[net.weight[layer] : net.weight[layer] + rows_out * rows_in]
        bias = theta[net.bias[layer] : net.bias[layer] + rows_out]
        if n <= FEW:
            few_rows(below, weight, here, n, rows_out, rows_in)
        else:
            matmul(below, AS_IS, weight, TURNED, here, n, rows_out, rows_in)
        grid = here.reshape(n, rows_out)
        if layer == last:
            add_rows(grid, bias)
        elif net.relu:
            relu_rows(grid, bias)
        else:
            tanh_rows(grid, bias)
        below, at = here, at + n * rows_out
    return below.reshape(n, net.sizes[last + 1])


@njit(cache=True, nogil=True)
def forward_blocks(first, stride, block, theta, net, x_ND, work, out_NK):
    """Outputs of every `stride`-th block of rows into out_NK; the bytes depend on `block`, not on who takes which."""
    for start in range(first * block, x_ND.shape[0], stride * block):
        x = x_ND[start : start + block]
        outputs = forward(theta, net, x.reshape(-1), x.shape[0], work)
        for i in range(outputs.shape[0]):  # a loop: assigning a slice makes Numba compile its error texts for 4 s
            for k in range(outputs.shape[1]):
                out_NK[start + i, k] = outputs[i, k]


@njit(cache=True, nogil=True)
def backward(theta, net, x_flat, n, work, d_out, grad):
    """Write dL/dW and dL/db of every layer into `grad`, given dL/d(out) [n, out] of the rows of the last `forward`."""
    last = net.sizes.size - 2
    ends = np.empty(last + 2, np.int64)  # where each layer's activations begin in `work`
    ends[0] = 0
    for layer in range(last + 1):
        ends[layer + 1] = ends[layer] + n * net.sizes[layer + 1]
    spare = n * widest(net)
    delta = d_out.reshape(-1)
    for layer in range(last, -1, -1):
        rows_in, rows_out = net.sizes[layer], net.sizes[layer + 1]
        below = x_flat if layer == 0 else work[ends[layer - 1] : ends[layer - 1] + n * rows_in]
        at = net.weight[layer]
        weights = grad[at : at + rows_out * rows_in]
        if layer == 0 and rows_in <= FEW:
            narrow_gradient(delta, below, weights, n, rows_out, rows_in)
        else:
            matmul(delta, TURNED, below, AS_IS, weights, rows_out, rows_in, n)
        sum_rows(delta.reshape(n, rows_out), grad[net.bias[layer] : net.bias[layer] + rows_out])
        if layer > 0:
            start = ends[last + 1] + (layer % 2) * spare
            under = work[start : start + n * rows_in]
            matmul(delta, AS_IS, theta[at : at + rows_out * rows_in], AS_IS, under, n, rows_in, rows_out)
            if net.relu:
                relu_back_rows(under.reshape(n, rows_in), below.reshape(n, rows_in))
            else:
                tanh_back_rows(under.reshape(n, rows_in), below.reshape(n, rows_in))
            delta = under


@njit(cache=True, nogil=True)
def backward_inputs(theta, net, n, work, d_out, last_inputs, d_in):
    """Write dL/dx of the last inputs [n * last_inputs] into `d_in`, given dL/d(out) [n, out] of the rows of the last
    `forward`; weights get none. It is what an actor needs from a critic: which way the action should go.
    """
    last, end = net.sizes.size - 2, n * net.sizes[1:].sum()
    spare, delta = n * widest(net), d_out.reshape(-1)
    for layer in range(last, 0, -1):
        rows_in, rows_out, at = net.sizes[layer], net.sizes[layer + 1], net.weight[layer]
        start, below = end + (layer % 2) * spare, n * net.sizes[1:layer].sum()
        under = work[start : start + n * rows_in]
        matmul(delta, AS_IS, theta[at : at + rows_out * rows_in], AS_IS, under, n, rows_in, rows_out)
        if net.relu:
            relu_back_rows(under.reshape(n, rows_in), work[below : below + n * rows_in].reshape(n, rows_in))
        else:
            tanh_back_rows(under.reshape(n, rows_in), work[below : below + n * rows_in].reshape(n, rows_in))
        delta = under
    rows_in, rows_out, at = net.sizes[0], net.sizes[1], net.weight[0]
    columns = np.empty(last_inputs * rows_out, f32)  # of the first weights, each in one piece
    for k in range(last_inputs):
        for j in range(rows_out):
            columns[k * rows_out + j] = theta[at + (j + 1) * rows_in - last_inputs + k]
    few_rows(delta, columns, d_in, n, last_inputs, rows_out)


@njit(cache=True, nogil=True)
def take_rows(net, n, work, rows, count, some):
    """Activations of the first `count` of these rows into `some`, as if `forward` had been asked for them alone."""
    start, at = 0, 0
    for layer in range(1, net.sizes.size):
        size = net.sizes[layer]
        for i in range(count):
            here = start + rows[i] * size
            for j in range(size):
                some[at + j] = work[here + j]
            at += size
        start += n * size
