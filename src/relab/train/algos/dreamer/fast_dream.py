"""How are dreams dreamt fast? Actor, memory and prior step after step, for all dreams at once, in one call.

Same function as Behaviour.imagine (a test holds them together): the same uniform numbers give the same dreams.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.train.algos.dreamer import fast_layers, fast_scan, one_hot, rows
from relab.train.algos.dreamer.actions import LEAST_STD, MOST_STD
from relab.train.kernels.blas import AS_IS, TURNED, gemm
from relab.train.kernels.jit import njit

f32 = np.float32
TURN = 2 * math.pi


class Choices(NamedTuple):
    """What the actor draws: `sizes` of every component's choices, or `dim` numbers where there are none."""

    sizes: np.ndarray
    dim: int
    mix: float


@njit(cache=True, nogil=True)
def draw_choice(out, mix, u):
    """The first choice whose cumulated probability reaches u."""
    most, total, reached = out[0], f32(0.0), f32(0.0)
    for c in range(1, out.size):
        most = max(most, out[c])
    for c in range(out.size):
        total += rows.exp(out[c] - most)
    for c in range(out.size):
        reached += (f32(1.0) - f32(mix)) * rows.exp(out[c] - most) / total + f32(mix) / f32(out.size)
        if reached >= u:
            return c
    return out.size - 1


@njit(cache=True, nogil=True)
def draw_number(mean, wide, radius, angle):
    """A draw around the middle of the box, as Actions.draw."""
    std = f32(LEAST_STD) + f32(MOST_STD - LEAST_STD) * rows.sigmoid(wide + f32(2.0))
    normal = math.sqrt(f32(-2.0) * math.log1p(-radius)) * math.cos(f32(TURN) * angle)
    return rows.tanh(mean) + std * f32(normal)


@njit(cache=True, nogil=True)
def draw_actions(out, n, choices, uniform, ldu, action, code):
    """Actions [n, dim], and as the world model is told of them [n, in]."""
    dim, sizes = choices.dim, choices.sizes
    width = sizes.sum() if sizes.size else dim
    code[: n * width].fill(f32(0.0))
    for i in range(n):
        u, at = uniform[i * ldu :], i * width
        if sizes.size == 0:
            for j in range(dim):
                x = draw_number(out[2 * i * dim + j], out[(2 * i + 1) * dim + j], u[j], u[dim + j])
                action[i * dim + j], code[at + j] = x, min(max(x, f32(-1.0)), f32(1.0))
            continue
        for j in range(sizes.size):
            c = draw_choice(out[at : at + sizes[j]], choices.mix, u[j])
            action[i * dim + j], code[at + c] = f32(c), f32(1.0)
            at += sizes[j]


@njit(cache=True, nogil=True)
def dream(theta, core, actor, prior, effect, choices, turned, uniform, H, N, first, n, feature, action, out, kept, hot):
    """Dreams `first` to first + n of N: fill feature [H + 1, N, F], whose first step is real, and action [H, N, dim].

    `effect`: the weight of actions; `turned`: the weights of the latents in the actor and in front of the memory, as
    one_hot.py takes them. Filled too: the actor's outputs `out` [H, N, out] and what its way back needs, `kept`
    [H, N, room]; which latents are 1, `hot` [H + 1, N, S].
    """
    D, U, S, L = core.deter, core.hidden, core.stoch, core.classes * core.stoch
    F, A, K = D + L, choices.sizes.sum() if choices.sizes.size else choices.dim, choices.dim
    width, zero, g, b = uniform.size // (H * N), f32(0.0), core.gates_scale, core.gates_bias
    work, each = np.empty(fast_layers.BLOCK * fast_layers.room(prior), f32), fast_layers.room(actor)
    code, a, rate = np.empty(n * A, f32), np.empty(n * U, f32), np.empty(n, f32)
    xh, gates, spare = np.empty(n * (U + D), f32), np.empty(n * 3 * D, f32), np.empty((4, n * D), f32)
    logits, soft = np.empty(n * L, f32), np.empty(n * L, f32)
    to_actor, to_memory, none, empty = turned[0], turned[1], np.empty(0, np.int32), np.empty(0, f32)
    one_hot.find(feature[first * F + D :], F, n, core.classes, S, hot[first * S :])
    for t in range(H):
        row = t * N + first
        ones = hot[row * S : (row + n) * S]
        here, after, u = feature[row * F :], feature[(row + N) * F :], uniform[row * width :]
        said = out[row * actor.out :]
        fast_layers.forward(theta, actor, here, F, n, kept[row * each :], True, said, ones, to_actor)
        draw_actions(said, n, choices, u[S:], width, action[row * K :], code)
        gemm(code, A, AS_IS, theta[effect:], A, TURNED, a, U, n, U, A, zero)
        one_hot.add(a, n, U, ones, to_memory)
        rows.normalise(a, n, U, rate)
        rows.scaled_silu(a, n, U, theta[core.into_scale : core.into_scale + U],
                         theta[core.into_bias : core.into_bias + U], xh, U + D)  # fmt: skip
        copy_columns(here, F, n, D, xh[U:], U + D)
        gemm(xh, U + D, AS_IS, theta[core.gates :], U + D, TURNED, gates, 3 * D, n, 3 * D, U + D, zero)
        rows.normalise(gates, n, 3 * D, rate)
        fast_scan.gru(gates, theta[g : g + 3 * D], theta[b : b + 3 * D], n, D, here, F, spare[0], spare[1], spare[2],
                      spare[3], after, F)  # fmt: skip
        fast_layers.forward(theta, prior, after, F, n, work, False, logits, none, empty)
        rows.mixed_softmax(logits, n, core.classes, S, core.mix, soft, logits)
        rows.draw_latents(logits, n, core.classes, S, u, width, after[D:], F)
        one_hot.find(after[D:], F, n, core.classes, S, hot[(row + N) * S :])


@njit(cache=True, nogil=True)
def copy_columns(x, ldx, n, width, out, ldo):
    for i in range(n):
        for j in range(width):
            out[i * ldo + j] = x[i * ldx + j]
