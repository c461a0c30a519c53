"""How does the world model run over a batch fast? The recurrent part alone, forward and back through time by hand.

Same function as WorldModel.scan (tests hold values and gradients against autograd). What needs no memory, encoder and
heads, is computed for all rows at once elsewhere; products for the weights' gradients are made once, for all steps.

    a_t = W_in z + effect_t,  x = silu(norm a),  g = norm(W_g [x, h]),  h_t = GRU(g, h),
    q_t = W_q h_t + seen_t,   y = silu(norm q),  z_t ~ mix(softmax(W_o y + b_o))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import rows
from relab.train.algos.dreamer.fast_layers import offsets
from relab.train.kernels.blas import AS_IS, TURNED, gemm
from relab.train.kernels.jit import njit
from relab.train.nets.networks import Params

f32 = np.float32


class Core(NamedTuple):
    """Sizes of the recurrent part, and where its weights lie in the flat vector."""

    deter: int
    hidden: int
    classes: int
    stoch: int
    mix: float
    into: int  # weight of z -> x
    into_scale: int
    into_bias: int
    gates: int
    gates_scale: int
    gates_bias: int
    seen: int  # weight of h -> y
    seen_scale: int
    seen_bias: int
    out: int
    out_bias: int


def core_of(params: Params, deter: int, hidden: int, classes: int, stoch: int, mix: float, model: str) -> Core:
    at = offsets(params)
    names = [f"{part}/{kind}" for part in ("input", "gates", "posterior") for kind in ("weight", "scale", "bias")]
    names += ["posterior/out/weight", "posterior/out/bias"]
    return Core(deter, hidden, classes, stoch, mix, *(at[f"{model}/{name}"] for name in names))


class Start(NamedTuple):
    """Memory and latents before the first step."""

    h: Tensor  # [B, D]
    z: Tensor  # [B, L]


class Kept(NamedTuple):
    """What the way back needs of every step, flat, time first."""

    zk: np.ndarray  # latents before, cleared where an episode begins
    a: np.ndarray  # normalised
    a_rate: np.ndarray
    xh: np.ndarray  # x and the memory before
    g: np.ndarray  # normalised
    g_rate: np.ndarray
    reset: np.ndarray
    inner: np.ndarray  # the candidate before it was reset
    candidate: np.ndarray
    update: np.ndarray
    q: np.ndarray  # normalised
    q_rate: np.ndarray
    y: np.ndarray
    soft: np.ndarray


def kept(core: Core, rows_: int) -> Kept:
    D, U, L = core.deter, core.hidden, core.classes * core.stoch
    sizes = (L, U, 1, U + D, 3 * D, 1, D, D, D, D, U, 1, U, L)
    return Kept(*(np.empty(rows_ * size, f32) for size in sizes))


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def gru(g, scale, bias, n, D, before, ldb, reset, inner, candidate, update, h, ldh):
    """h = before + update (candidate - before) from normalised gates g [n, 3 D]; it begins by keeping most."""
    for i in range(n):
        g_i, m = g[3 * D * i : 3 * D * (i + 1)], slice(i * D, (i + 1) * D)
        open_gate(g_i[:D], scale[:D], bias[:D], f32(0.0), reset[m])
        open_gate(g_i[2 * D :], scale[2 * D :], bias[2 * D :], f32(-1.0), update[m])
        propose(g_i[D : 2 * D], scale[D : 2 * D], bias[D : 2 * D], reset[m], inner[m], candidate[m])
        move_towards(before[i * ldb : i * ldb + D], candidate[m], update[m], h[i * ldh : i * ldh + D])


# Loops of a few arrays each: with more of them in one, the compiler does not vectorise, and takes four times as long.


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def open_gate(x, scale, bias, shift, out):
    for j in range(out.size):
        out[j] = rows.sigmoid(x[j] * scale[j] + bias[j] + shift)


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def propose(x, scale, bias, reset, inner, candidate):
    for j in range(inner.size):
        inner[j] = x[j] * scale[j] + bias[j]
    for j in range(candidate.size):
        candidate[j] = rows.tanh(reset[j] * inner[j])


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def move_towards(old, candidate, update, new):
    for j in range(new.size):
        new[j] = old[j] + update[j] * (candidate[j] - old[j])


@njit(cache=True, nogil=True, fastmath=rows.FUSE, error_model="numpy")
def gru_back(d_h, before, ldb, reset, inner, candidate, update, n, D, d_g, d_before):
    """From dL/dh: dL/d(scaled gates) and dL/d(memory before)."""
    for i in range(n):
        old = before[i * ldb : i * ldb + D]
        for j in range(D):
            k = i * D + j
            d, u, c, r = d_h[k], update[k], candidate[k], reset[k]
            d_tanh = d * u * (f32(1.0) - c * c)
            d_g[3 * D * i + j] = d_tanh * inner[k] * r * (f32(1.0) - r)
            d_g[3 * D * i + D + j] = d_tanh * r
            d_g[3 * D * i + 2 * D + j] = d * (c - old[j]) * u * (f32(1.0) - u)
            d_before[k] = d * (f32(1.0) - u)


@njit(cache=True, nogil=True)
def kept_rows(x, keep, n, width, out, ldo):
    """Rows of x, zero where an episode begins."""
    for i in range(n):
        for j in range(width):
            out[i * ldo + j] = x[i * width + j] * keep[i]


@njit(cache=True, nogil=True)
def add_rows(x, n, width, out, ldo):
    for i in range(n):
        for j in range(width):
            out[i * ldo + j] += x[i * width + j]


@njit(cache=True, nogil=True)
def forward(theta, core, seen, effect, keep, uniform, h_before, z_before, T, B, k, h, z, probs):
    """Memory h [T, B, D], latents z and their probabilities [T, B, L] of T steps, after h_before and z_before."""
    D, U, L, zero, one = core.deter, core.hidden, core.classes * core.stoch, f32(0.0), f32(1.0)
    g = core.gates_scale
    for t in range(T):
        n = t * B
        zk, a, xh = k.zk[n * L : (n + B) * L], k.a[n * U : (n + B) * U], k.xh[n * (U + D) : (n + B) * (U + D)]
        kept_rows(z_before, keep[n : n + B], B, L, zk, L)
        kept_rows(h_before, keep[n : n + B], B, D, xh[U:], U + D)
        for j in range(B * U):
            a[j] = effect[n * U + j]
        gemm(zk, L, AS_IS, theta[core.into :], L, TURNED, a, U, B, U, L, one)
        rows.normalise(a, B, U, k.a_rate[n : n + B])
        s, b = core.into_scale, core.into_bias
        rows.scaled_silu(a, B, U, theta[s : s + U], theta[b : b + U], xh, U + D)
        gates = k.g[n * 3 * D : (n + B) * 3 * D]
        gemm(xh, U + D, AS_IS, theta[core.gates :], U + D, TURNED, gates, 3 * D, B, 3 * D, U + D, zero)
        rows.normalise(gates, B, 3 * D, k.g_rate[n : n + B])
        m = slice(n * D, (n + B) * D)
        h_t = h[m]
        gru(gates, theta[g : g + 3 * D], theta[core.gates_bias : core.gates_bias + 3 * D], B, D, xh[U:], U + D,
            k.reset[m], k.inner[m], k.candidate[m], k.update[m], h_t, D)  # fmt: skip
        q, y = k.q[n * U : (n + B) * U], k.y[n * U : (n + B) * U]
        for j in range(B * U):
            q[j] = seen[n * U + j]
        gemm(h_t, D, AS_IS, theta[core.seen :], D, TURNED, q, U, B, U, D, one)
        rows.normalise(q, B, U, k.q_rate[n : n + B])
        s, b = core.seen_scale, core.seen_bias
        rows.scaled_silu(q, B, U, theta[s : s + U], theta[b : b + U], y, U)
        soft, p, z_t = k.soft[n * L : (n + B) * L], probs[n * L : (n + B) * L], z[n * L : (n + B) * L]
        gemm(y, U, AS_IS, theta[core.out :], U, TURNED, p, L, B, L, U, zero)
        rows.add_bias(p, B, L, theta[core.out_bias : core.out_bias + L])
        rows.mixed_softmax(p, B, core.classes, core.stoch, core.mix, soft, p)
        rows.draw_latents(p, B, core.classes, core.stoch, uniform[n * core.stoch :], core.stoch, z_t, L)
        h_before, z_before = h_t, z_t


@njit(cache=True, nogil=True)
def backward(theta, grad, core, keep, T, B, k, h, d_h, d_z, d_p, d_seen, d_effect):
    """Add the weights' gradients to `grad`; d_h, d_z, d_p are dL/d(outputs), and are used up."""
    D, U, L, zero, one = core.deter, core.hidden, core.classes * core.stoch, f32(0.0), f32(1.0)
    d_y, d_before, d_xh = np.empty(B * U, f32), np.empty(B * D, f32), np.empty(B * (U + D), f32)
    d_zk, d_g, rows_ = np.empty(B * L, f32), np.empty(T * B * 3 * D, f32), T * B
    for t in range(T - 1, -1, -1):
        n = t * B
        dp, dh = d_p[n * L : (n + B) * L], d_h[n * D : (n + B) * D]
        for j in range(B * L):
            dp[j] += d_z[n * L + j]  # gradients of a draw pass straight to its probabilities
        rows.mixed_softmax_back(dp, k.soft[n * L :], B, core.classes, core.stoch, core.mix)
        gemm(dp, L, AS_IS, theta[core.out :], U, AS_IS, d_y, U, B, U, L, zero)
        q, dq, s, b = k.q[n * U : (n + B) * U], d_seen[n * U : (n + B) * U], core.seen_scale, core.seen_bias
        rows.scaled_silu_back(d_y, U, q, B, U, theta[s : s + U], theta[b : b + U], grad[s : s + U], grad[b : b + U], dq)
        rows.normalise_back(dq, q, B, U, k.q_rate[n : n + B])
        gemm(dq, U, AS_IS, theta[core.seen :], D, AS_IS, dh, D, B, D, U, one)
        m, xh = slice(n * D, (n + B) * D), k.xh[n * (U + D) : (n + B) * (U + D)]
        dg, g, s, b = d_g[n * 3 * D : (n + B) * 3 * D], k.g[n * 3 * D :], core.gates_scale, core.gates_bias
        gru_back(dh, xh[U:], U + D, k.reset[m], k.inner[m], k.candidate[m], k.update[m], B, D, dg, d_before)
        rows.scale_back(dg, g, B, 3 * D, theta[s : s + 3 * D], grad[s : s + 3 * D], grad[b : b + 3 * D])
        rows.normalise_back(dg, g, B, 3 * D, k.g_rate[n : n + B])
        gemm(dg, 3 * D, AS_IS, theta[core.gates :], U + D, AS_IS, d_xh, U + D, B, U + D, 3 * D, zero)
        a, da, s, b = k.a[n * U : (n + B) * U], d_effect[n * U : (n + B) * U], core.into_scale, core.into_bias
        rows.scaled_silu_back(d_xh, U + D, a, B, U, theta[s : s + U], theta[b : b + U], grad[s : s + U],
                              grad[b : b + U], da)  # fmt: skip
        rows.normalise_back(da, a, B, U, k.a_rate[n : n + B])
        if t > 0:
            gemm(da, U, AS_IS, theta[core.into :], L, AS_IS, d_zk, L, B, L, U, zero)
            pass_back(d_before, d_xh, d_zk, keep[n : n + B], B, D, U, L, d_h[(n - B) * D :], d_z[(n - B) * L :])
    gemm(d_p, L, TURNED, k.y, U, AS_IS, grad[core.out :], U, L, U, rows_, one)
    rows.add_column_sums(d_p, rows_, L, grad[core.out_bias : core.out_bias + L])
    gemm(d_seen, U, TURNED, h, D, AS_IS, grad[core.seen :], D, U, D, rows_, one)
    gemm(d_g, 3 * D, TURNED, k.xh, U + D, AS_IS, grad[core.gates :], U + D, 3 * D, U + D, rows_, one)
    gemm(d_effect, U, TURNED, k.zk, L, AS_IS, grad[core.into :], L, U, L, rows_, one)


@njit(cache=True, nogil=True)
def pass_back(d_before, d_xh, d_zk, keep, B, D, U, L, d_h, d_z):
    """Gradients of what a step remembered go to the step before, unless an episode began."""
    for i in range(B):
        for j in range(D):
            d_h[i * D + j] += keep[i] * (d_before[i * D + j] + d_xh[i * (U + D) + U + j])
        for j in range(L):
            d_z[i * L + j] += keep[i] * d_zk[i * L + j]


class Scan(torch.autograd.Function):
    """(seen, effect) [T, B, U] -> (h [T, B, D], z [T, B, L], probabilities [T, B, L])."""

    @staticmethod
    def forward(
        ctx: Any, seen: Tensor, effect: Tensor, keep: Tensor, uniform: Tensor, start: Start, params: Params, core: Core
    ) -> tuple[Tensor, Tensor, Tensor]:
        T, B = keep.shape
        L, k = core.classes * core.stoch, kept(core, T * B)
        h, z, probs = torch.empty(T, B, core.deter), torch.empty(T, B, L), torch.empty(T, B, L)
        inputs, outputs = [flat(x) for x in (seen, effect, keep, uniform, *start)], [flat(x) for x in (h, z, probs)]
        forward(params.flat.numpy(), core, *inputs, T, B, k, *outputs)  # type: ignore[call-arg]
        ctx.facts = params, core, flat(keep), T, B, k, flat(h)
        return h, z, probs

    @staticmethod
    def backward(ctx: Any, d_h: Tensor, d_z: Tensor, d_p: Tensor) -> tuple[Any, ...]:
        params, core, keep, T, B, k, h = ctx.facts
        d_seen, d_effect = torch.empty(T, B, core.hidden), torch.empty(T, B, core.hidden)
        used = [flat(x).copy() for x in (d_h, d_z, d_p)]
        backward(params.flat.numpy(), params.grad.numpy(), core, keep, T, B, k, h, *used, flat(d_seen), flat(d_effect))  # type: ignore[call-arg]
        return d_seen, d_effect, None, None, None, None, None


def flat(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().numpy().reshape(-1)
