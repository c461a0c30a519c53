"""What is a step of Q-learning? The whole gradient of one minibatch in a single kernel call.

    y = G + d Q_target(s', a'),   a' = argmax Q(s', .) of the online network (double) or of the target network
    L = mean huber(Q(s, a) - y)

G and d are the n-step return and the discount behind it: 0 after a termination. Dueling networks have one output more,
V, and Q = V + A - mean(A).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.train.kernels.jit import njit
from relab.train.nets.fastmlp import Layout, backward, forward

f32 = np.float32


class QStats(NamedTuple):
    """Of one minibatch, before the step."""

    loss: float
    td_error: float  # mean |Q - y|
    q_mean: float
    target_mean: float
    target_max: float
    after_end: float  # largest |d Q(s')| behind a termination: must be 0


class Room(NamedTuple):
    """Buffers of one learner: activations, outputs of the two networks, gradients of the output."""

    work: np.ndarray
    next_NK: np.ndarray
    d_NK: np.ndarray


def room(rows: int, net: Layout) -> Room:
    out, widest = int(net.sizes[-1]), int(net.sizes[1:].sum() + 2 * net.sizes.max())
    return Room(*(np.zeros(shape, np.float32) for shape in (rows * widest, (rows, out), (rows, out))))


@njit(cache=True, nogil=True)
def q_row(out_NK, i, k, dueling):
    """Q of action k in row i, from the network's outputs."""
    if not dueling:
        return out_NK[i, k]
    size, total = out_NK.shape[1] - 1, f32(0.0)
    for j in range(size):
        total += out_NK[i, j]
    return out_NK[i, size] + out_NK[i, k] - total / f32(size)


@njit(cache=True, nogil=True)
def best_action(out_NK, i, dueling):
    """The first action with the largest Q; V and the mean are the same for all of them."""
    best = 0
    for k in range(1, out_NK.shape[1] - (1 if dueling else 0)):
        if out_NK[i, k] > out_NK[i, best]:
            best = k
    return best


@njit(cache=True, nogil=True)
def successor_values(theta, target, net, next_flat, n, work, next_NK, double, dueling, value_N):
    """max or double-Q value of the successors, into value_N."""
    out_NK = forward(target, net, next_flat, n, work)
    for i in range(n):
        for k in range(out_NK.shape[1]):
            next_NK[i, k] = out_NK[i, k]
    if double:
        out_NK = forward(theta, net, next_flat, n, work)
    for i in range(n):
        chosen = best_action(out_NK if double else next_NK, i, dueling)
        value_N[i] = q_row(next_NK, i, chosen, dueling)


@njit(cache=True, nogil=True)
def q_gradient(theta, target, net, obs_ND, action_N, return_N, discount_N, next_ND, ended_N, double, dueling, work,
               next_NK, d_NK, grad, stats):  # fmt: skip
    """dL/dtheta into `grad`, what the minibatch looks like into `stats` (QStats)."""
    n = obs_ND.shape[0]
    value_N = np.empty(n, np.float32)
    successor_values(theta, target, net, next_ND.reshape(-1), n, work, next_NK, double, dueling, value_N)
    out_NK = forward(theta, net, obs_ND.reshape(-1), n, work)
    size, actions = out_NK.shape[1], out_NK.shape[1] - (1 if dueling else 0)
    loss, away, q_sum, y_sum, y_max, leak = 0.0, 0.0, 0.0, 0.0, -np.inf, 0.0
    for i in range(n):
        y = return_N[i] + discount_N[i] * value_N[i]
        q = q_row(out_NK, i, action_N[i], dueling)
        td = q - y
        size_td = abs(td)
        loss += 0.5 * td * td if size_td <= 1.0 else size_td - 0.5
        away, q_sum, y_sum, y_max = away + size_td, q_sum + q, y_sum + y, max(y_max, y)
        if ended_N[i]:
            leak = max(leak, abs(y - return_N[i]))
        push = f32(min(max(td, f32(-1.0)), f32(1.0)) / n)
        for k in range(size):
            d_NK[i, k] = f32(0.0)
        if dueling:
            for k in range(actions):
                d_NK[i, k] = -push / f32(actions)
            d_NK[i, actions] = push
        d_NK[i, action_N[i]] += push
    backward(theta, net, obs_ND.reshape(-1), n, work, d_NK[:n].reshape(-1), grad)
    stats[0], stats[1], stats[2], stats[3], stats[4], stats[5] = loss / n, away / n, q_sum / n, y_sum / n, y_max, leak
