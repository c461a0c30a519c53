"""What do Dreamer's layers compute for a row of numbers, and how do gradients come back? Kernels that vectorise.

Every array is flat; rows of x lie `ldx` numbers apart. torch does the same in many more calls, each of them short: at
the sizes of CartPole its calls take longer than their arithmetic (benchmarks/dreamer.py).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from relab.train.kernels.jit import njit

f32, i32 = np.float32, np.int32
EPS = f32(1e-5)  # as torch's layer_norm
SUMS = {"contract", "reassoc"}  # a sum may be taken in another order: sixteen sums side by side
FUSE = {"contract"}
MAGIC = f32(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the last bits


@intrinsic
def bits_of(typing_context, x):
    """The 32 bits of a float as an integer."""

    def code(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), code


@intrinsic
def float_of(typing_context, x):
    """The float that 32 bits stand for."""

    def code(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), code


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def exp(x):
    """e^x to two units in the last place (Cephes' polynomial), without branches, so that loops of it vectorise."""
    x = f32(87.0) if x > f32(87.0) else x
    x = f32(-87.0) if x < f32(-87.0) else x
    shifted = x * f32(1.44269504) + MAGIC
    whole = shifted - MAGIC
    r = x - whole * f32(0.693359375) + whole * f32(2.12194440e-4)  # ln 2 in two parts: the product is exact
    p = f32(1.9875691500e-4)
    p = p * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    scale = float_of(i32((bits_of(shifted) - i32(0x4B400000) + i32(127)) << i32(23)))  # type: ignore
    return (p * r * r + r + f32(1.0)) * scale


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def sigmoid(x):
    return f32(1.0) / (f32(1.0) + exp(-x))


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def tanh(x):
    return f32(2.0) * sigmoid(f32(2.0) * x) - f32(1.0)


# ---- Normalisation


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def mean_and_rate(x):
    """The mean of a row, and 1 / its standard deviation."""
    total = f32(0.0)
    for j in range(x.size):
        total += x[j]
    mean = total / f32(x.size)
    spread = f32(0.0)
    for j in range(x.size):
        spread += (x[j] - mean) * (x[j] - mean)
    return mean, f32(1.0) / np.sqrt(spread / f32(x.size) + EPS)


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def normalise(x, n, width, rate_N):
    """Rows of x [n, width] to mean 0 and deviation 1, in place; what they were multiplied by goes to rate_N."""
    for i in range(n):
        row = x[i * width : (i + 1) * width]
        mean, rate = mean_and_rate(row)
        rate_N[i] = rate
        for j in range(width):
            row[j] = (row[j] - mean) * rate


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def scaled_silu(x, n, width, scale, bias, y, ldy):
    """y = silu(scale * x + bias)."""
    for i in range(n):
        row, out = x[i * width : (i + 1) * width], y[i * ldy : i * ldy + width]
        for j in range(width):
            v = row[j] * scale[j] + bias[j]
            out[j] = v * sigmoid(v)


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def scaled_silu_back(d, ldd, x, n, width, scale, bias, d_scale, d_bias, out):
    """out = dL/dx of scaled_silu from d = dL/dy; the gradients of scale and bias are added."""
    for i in range(n):
        row, up, down = x[i * width : (i + 1) * width], d[i * ldd : i * ldd + width], out[i * width : (i + 1) * width]
        for j in range(width):
            v = row[j] * scale[j] + bias[j]
            s = sigmoid(v)
            down[j] = up[j] * s * (f32(1.0) + v * (f32(1.0) - s))
    scale_back(out, x, n, width, scale, d_scale, d_bias)


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def scale_back(d, x, n, width, scale, d_scale, d_bias):
    """d = dL/d(scale * x + bias) becomes dL/dx in place; the gradients of scale and bias are added."""
    for i in range(n):
        row, down = x[i * width : (i + 1) * width], d[i * width : (i + 1) * width]
        for j in range(width):  # loops of their own: with more arrays in one the compiler does not vectorise
            d_bias[j] += down[j]
        for j in range(width):
            d_scale[j] += down[j] * row[j]
        for j in range(width):
            down[j] *= scale[j]


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def two_means(d, x):
    """The means of d and of d * x."""
    plain, product = f32(0.0), f32(0.0)
    for j in range(d.size):
        plain += d[j]
        product += d[j] * x[j]
    return plain / f32(d.size), product / f32(d.size)


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def normalise_back(d, x, n, width, rate_N):
    """d = dL/d(normalised x) becomes dL/d(what was normalised), in place."""
    for i in range(n):
        row, down = x[i * width : (i + 1) * width], d[i * width : (i + 1) * width]
        plain, product = two_means(down, row)
        for j in range(width):
            down[j] = (down[j] - plain - row[j] * product) * rate_N[i]


@njit(cache=True, nogil=True)
def add_bias(x, n, width, bias):
    for i in range(n):
        row = x[i * width : (i + 1) * width]
        for j in range(width):
            row[j] += bias[j]


@njit(cache=True, nogil=True)
def add_column_sums(d, n, width, out):
    for i in range(n):
        row = d[i * width : (i + 1) * width]
        for j in range(width):
            out[j] += row[j]


# ---- Latent variables: classes first, so that neighbours in memory are different variables


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def mixed_softmax(x, n, classes, stoch, mix, soft, probs):
    """soft = softmax of every variable's classes, probs = (1 - mix) soft + mix / classes; all [n, classes, stoch]."""
    most, total = np.empty(stoch, f32), np.empty(stoch, f32)
    keep, even = f32(1.0) - f32(mix), f32(mix) / f32(classes)
    for i in range(n):
        at = i * classes * stoch
        for s in range(stoch):
            most[s], total[s] = x[at + s], f32(0.0)
        for c in range(1, classes):
            row = x[at + c * stoch : at + (c + 1) * stoch]
            for s in range(stoch):
                most[s] = row[s] if row[s] > most[s] else most[s]
        for c in range(classes):
            row, out = x[at + c * stoch : at + (c + 1) * stoch], soft[at + c * stoch : at + (c + 1) * stoch]
            for s in range(stoch):
                out[s] = exp(row[s] - most[s])
                total[s] += out[s]
        for c in range(classes):
            out, mixed = soft[at + c * stoch : at + (c + 1) * stoch], probs[at + c * stoch : at + (c + 1) * stoch]
            for s in range(stoch):
                out[s] /= total[s]
                mixed[s] = keep * out[s] + even


@njit(cache=True, nogil=True, fastmath=FUSE, error_model="numpy")
def mixed_softmax_back(d, soft, n, classes, stoch, mix):
    """d = dL/dprobs becomes dL/dlogits, in place."""
    inner, keep = np.empty(stoch, f32), f32(1.0) - f32(mix)
    for i in range(n):
        at = i * classes * stoch
        inner.fill(f32(0.0))
        for c in range(classes):
            for s in range(stoch):
                inner[s] += d[at + c * stoch + s] * soft[at + c * stoch + s]
        for c in range(classes):
            for s in range(stoch):
                j = at + c * stoch + s
                d[j] = keep * soft[j] * (d[j] - inner[s])


@njit(cache=True, nogil=True)
def draw_latents(probs, n, classes, stoch, uniform, ldu, z, ldz):
    """One-hot draws z [n, classes * stoch] by uniform [n, stoch], as equations.sample."""
    below, ends = np.empty(stoch, f32), np.empty(stoch, f32)
    for i in range(n):
        u = uniform[i * ldu : i * ldu + stoch]
        below.fill(f32(0.0))
        ends.fill(f32(0.0))
        for c in range(classes):
            p, hot = probs[(i * classes + c) * stoch :], z[i * ldz + c * stoch : i * ldz + (c + 1) * stoch]
            for s in range(stoch):
                ends[s] += p[s]
                reached = f32(1.0) if (ends[s] > u[s] or c == classes - 1) else f32(0.0)
                hot[s] = reached - below[s]
                below[s] = reached
