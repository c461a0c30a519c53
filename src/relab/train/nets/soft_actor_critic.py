"""What is a step of soft actor-critic? Critics and actor of one minibatch in a single kernel call.

    a = tanh(u),  u = mean(s) + std(s) z,  z ~ N(0, 1),   ln pi(a|s) = sum_k ln N(u_k) - ln(1 - a_k²)
    y = G + d (min(Q1', Q2')(s', a') - alpha ln pi(a'|s')),   L_critics = mean ((Q1(s, a) - y)² + (Q2(s, a) - y)²) / 2
    L_actor = mean (alpha ln pi(a|s) - min(Q1, Q2)(s, a)),   its gradient goes through the action (no torch: by hand)

G and d are the n-step return and the discount behind it: 0 after a termination. The actor's outputs are the means of
all components, then ln std, cut to [-20, 2].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.train.kernels.jit import njit
from relab.train.kernels.rng import normal_pair
from relab.train.nets.fastmlp import Layout, backward, backward_inputs, forward, take_rows, workspace
from relab.train.nets.mlps import adam_step

LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0
HALF_LOG_2PI, LN_2 = 0.5 * math.log(2 * math.pi), math.log(2.0)


class Nets(NamedTuple):
    """Where the three networks lie; the critics come first, so that their slow copies have the same places."""

    q1: Layout
    q2: Layout
    actor: Layout


class Batch(NamedTuple):
    """Transitions to learn from."""

    obs_ND: np.ndarray
    action_NK: np.ndarray  # in [-1, 1]
    return_N: np.ndarray
    discount_N: np.ndarray  # of the successor's value
    next_ND: np.ndarray
    ended_N: np.ndarray  # whether the episode terminated there: the discount must be 0


class Room(NamedTuple):
    """Buffers of one learner: activations of three networks, inputs of the critics, actions, gradients."""

    work_1: np.ndarray
    work_2: np.ndarray
    work_pi: np.ndarray
    some: np.ndarray  # activations of some rows
    x: np.ndarray  # [rows * (obs + action)]
    dx: np.ndarray
    dx_some: np.ndarray
    first_N: np.ndarray  # whether the first critic is the smaller
    rows_N: np.ndarray
    ones_N: np.ndarray
    action_NK: np.ndarray
    logp_N: np.ndarray
    value_N: np.ndarray
    d_1: np.ndarray  # gradients of the outputs
    d_2: np.ndarray
    d_pi: np.ndarray
    grad: np.ndarray  # of all parameters


class Stats(NamedTuple):
    """Of one minibatch, before the step."""

    critic_loss: float
    td_error: float  # mean |Q - y| of both critics
    q_mean: float
    target_mean: float
    target_max: float
    after_end: float  # largest |y - G| behind a termination: must be 0
    actor_loss: float
    entropy: float  # -mean ln pi
    std_mean: float
    std_max: float
    critic_norm: float  # of the gradients
    actor_norm: float


def room(rows: int, nets: Nets, weights: int) -> Room:
    inputs, components = int(nets.q1.sizes[0]), int(nets.actor.sizes[-1]) // 2

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    return Room(
        work_1=workspace(rows, nets.q1), work_2=workspace(rows, nets.q2), work_pi=workspace(rows, nets.actor),
        some=workspace(rows, nets.q1), x=zeros(rows * inputs), dx=zeros(rows * inputs), dx_some=zeros(rows * inputs),
        first_N=np.zeros(rows, bool), rows_N=np.zeros(rows, np.int64), ones_N=np.ones(rows, np.float32),
        action_NK=zeros(rows, components), logp_N=zeros(rows), value_N=zeros(rows), d_1=zeros(rows), d_2=zeros(rows),
        d_pi=zeros(rows * 2 * components), grad=zeros(weights),
    )  # fmt: skip


# ---- The actor's distribution


@njit(cache=True, nogil=True)
def log_density(z, log_std, u):
    """ln of the density of tanh(u), u = mean + std z; ln(1 - tanh²u) = 2 (ln 2 - u - softplus(-2u)) for any u."""
    softplus = max(-2.0 * u, 0.0) + math.log1p(math.exp(-abs(2.0 * u)))
    return -0.5 * z * z - log_std - HALF_LOG_2PI - 2.0 * (LN_2 - u - softplus)


@njit(cache=True, nogil=True)
def cut(log_std):
    low = LOG_STD_LOW if log_std < LOG_STD_LOW else np.float64(log_std)  # NaN stays NaN
    return LOG_STD_HIGH if low > LOG_STD_HIGH else low


@njit(cache=True, nogil=True)
def squash(out_NO, noise_NK, action_NK, logp_N):
    """Actions in [-1, 1] and their log-probabilities, from the actor's outputs and standard normal numbers."""
    size = noise_NK.shape[1]
    for i in range(noise_NK.shape[0]):
        logp = 0.0
        for k in range(size):
            z, log_std = np.float64(noise_NK[i, k]), cut(out_NO[i, size + k])
            u = out_NO[i, k] + math.exp(log_std) * z
            action_NK[i, k] = math.tanh(u)
            logp += log_density(z, log_std, u)
        logp_N[i] = logp


@njit(cache=True, nogil=True)
def draw_noise(rng_B, n_mode, noise_BK):
    """Standard normal numbers, each row from its own stream; 0, which is the mode, in the first `n_mode` rows."""
    for b in range(noise_BK.shape[0]):
        first, second = 0.0, 0.0
        for k in range(noise_BK.shape[1]):
            if b >= n_mode and k % 2 == 0:
                first, second = normal_pair(rng_B, b)
            noise_BK[b, k] = first if k % 2 == 0 else second


# ---- Critics


@njit(cache=True, nogil=True)
def join(obs_ND, action_NK, x):
    """Observation and action side by side: what a critic sees."""
    at = 0
    for i in range(obs_ND.shape[0]):
        for j in range(obs_ND.shape[1]):
            x[at + j] = obs_ND[i, j]
        at += obs_ND.shape[1]
        for k in range(action_NK.shape[1]):
            x[at + k] = action_NK[i, k]
        at += action_NK.shape[1]


@njit(cache=True, nogil=True)
def soft_values(theta, target, nets, next_ND, noise_NK, alpha, r):
    """V(s') = min(Q1', Q2')(s', a') - alpha ln pi(a'|s') into r.value_N, a' drawn by the actor of now."""
    n = next_ND.shape[0]
    squash(forward(theta, nets.actor, next_ND.reshape(-1), n, r.work_pi), noise_NK, r.action_NK, r.logp_N)
    join(next_ND, r.action_NK, r.x)
    q1 = forward(target, nets.q1, r.x, n, r.work_1)
    q2 = forward(target, nets.q2, r.x, n, r.work_2)
    for i in range(n):
        r.value_N[i] = min(q1[i, 0], q2[i, 0]) - alpha * r.logp_N[i]


@njit(cache=True, nogil=True)
def critic_gradient(theta, target, nets, batch, noise_NK, alpha, r, stats):
    """dL_critics/dtheta into their part of r.grad."""
    n = batch.obs_ND.shape[0]
    soft_values(theta, target, nets, batch.next_ND, noise_NK, alpha, r)
    join(batch.obs_ND, batch.action_NK, r.x)
    q1 = forward(theta, nets.q1, r.x, n, r.work_1)
    q2 = forward(theta, nets.q2, r.x, n, r.work_2)
    loss, away, q_sum, y_sum, y_max, leak = 0.0, 0.0, 0.0, 0.0, -np.inf, 0.0
    for i in range(n):
        y = batch.return_N[i] + batch.discount_N[i] * r.value_N[i]
        one, two = q1[i, 0] - y, q2[i, 0] - y
        r.d_1[i], r.d_2[i] = one / n, two / n
        loss, away = loss + 0.5 * (one * one + two * two), away + 0.5 * (abs(one) + abs(two))
        q_sum, y_sum, y_max = q_sum + 0.5 * (q1[i, 0] + q2[i, 0]), y_sum + y, max(y_max, y)
        if batch.ended_N[i]:
            leak = max(leak, abs(y - batch.return_N[i]))
    backward(theta, nets.q1, r.x, n, r.work_1, r.d_1[:n], r.grad)
    backward(theta, nets.q2, r.x, n, r.work_2, r.d_2[:n], r.grad)
    stats[0], stats[1], stats[2], stats[3], stats[4], stats[5] = loss / n, away / n, q_sum / n, y_sum / n, y_max, leak


# ---- Actor


@njit(cache=True, nogil=True)
def slopes(theta, net, n, work, first, r):
    """dQ/dx into the rows of r.dx where r.first_N is `first`; no other row is computed."""
    inputs, count = net.sizes[0], 0
    for i in range(n):
        if r.first_N[i] == first:
            r.rows_N[count], count = i, count + 1
    take_rows(net, n, work, r.rows_N, count, r.some)
    backward_inputs(theta, net, count, r.some, r.ones_N[:count], r.dx_some)
    for c in range(count):
        for j in range(inputs):
            r.dx[r.rows_N[c] * inputs + j] = r.dx_some[c * inputs + j]


@njit(cache=True, nogil=True)
def action_slopes(theta, nets, n, r):
    """d min(Q1, Q2) / dx into r.dx: in each row that of the smaller one; the sum of the minima."""
    q1 = forward(theta, nets.q1, r.x, n, r.work_1)
    q2 = forward(theta, nets.q2, r.x, n, r.work_2)
    total = 0.0
    for i in range(n):
        r.first_N[i] = q1[i, 0] <= q2[i, 0]
        total += q1[i, 0] if r.first_N[i] else q2[i, 0]
    slopes(theta, nets.q1, n, r.work_1, True, r)
    slopes(theta, nets.q2, n, r.work_2, False, r)
    return total


@njit(cache=True, nogil=True)
def actor_gradient(theta, nets, obs_ND, noise_NK, alpha, r, stats):
    """dL_actor/dtheta into the actor's part of r.grad, by the noise with which the actions were drawn."""
    n, size, inputs = obs_ND.shape[0], noise_NK.shape[1], obs_ND.shape[1] + noise_NK.shape[1]
    out = forward(theta, nets.actor, obs_ND.reshape(-1), n, r.work_pi)
    squash(out, noise_NK, r.action_NK, r.logp_N)
    join(obs_ND, r.action_NK, r.x)
    q_sum, logp_sum, std_sum, std_max = action_slopes(theta, nets, n, r), 0.0, 0.0, 0.0
    for i in range(n):
        logp_sum += r.logp_N[i]
        for k in range(size):
            a, slope, log_std = r.action_NK[i, k], r.dx[(i + 1) * inputs - size + k], cut(out[i, size + k])
            std = math.exp(log_std)
            du = (2.0 * alpha * a - slope * (1.0 - a * a)) / n
            inside = LOG_STD_LOW <= out[i, size + k] <= LOG_STD_HIGH
            r.d_pi[(2 * i) * size + k] = du
            r.d_pi[(2 * i + 1) * size + k] = du * std * noise_NK[i, k] - alpha / n if inside else 0.0
            std_sum, std_max = std_sum + std, max(std_max, std)
    backward(theta, nets.actor, obs_ND.reshape(-1), n, r.work_pi, r.d_pi[: 2 * n * size], r.grad)
    stats[6], stats[7] = (alpha * logp_sum - q_sum) / n, -logp_sum / n
    stats[8], stats[9] = std_sum / (n * size), std_max


# ---- Both


@njit(cache=True, nogil=True)
def learn(theta, target, m, v, nets, batch, noise_2NK, alpha, updates, lr, b1, b2, eps, r, stats):
    """One step of Adam for the critics, then one for the actor, which sees them as they are now; Stats into `stats`."""
    split = nets.actor.weight[0]
    critic_gradient(theta, target, nets, batch, noise_2NK[0], alpha, r, stats)
    stats[10] = adam_step(theta[:split], r.grad[:split], m[:split], v[:split], updates, lr, b1, b2, eps, np.inf)
    actor_gradient(theta, nets, batch.obs_ND, noise_2NK[1], alpha, r, stats)
    stats[11] = adam_step(theta[split:], r.grad[split:], m[split:], v[split:], updates, lr, b1, b2, eps, np.inf)
