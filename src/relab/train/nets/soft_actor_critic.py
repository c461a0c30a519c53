"""What is a step of soft actor-critic? Critics and actor of one minibatch, in a single kernel call or by two threads.

    a = tanh(u),  u = mean(s) + std(s) z,  z ~ N(0, 1),   ln pi(a|s) = sum_k ln N(u_k) - ln(1 - a_k²)
    y = G + d (min(Q1', Q2')(s', a') - alpha ln pi(a'|s')),   L_critics = mean ((Q1(s, a) - y)² + (Q2(s, a) - y)²) / 2
    L_actor = mean (alpha ln pi(a|s) - min(Q1, Q2)(s, a)),   its gradient goes through the action (no torch: by hand)

G and d are the n-step return and the discount behind it: 0 after a termination. The actor's outputs are the means of
all components, then ln std, cut to [-20, 2].

Matrix products are nearly all of the work, so it is cut into two shares that one thread does in turn or two do at once:
a share is one critic, or one half of the rows for the actor. The bytes are the same either way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.train.kernels.crew import Crew
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import normal_pair
from relab.train.nets.fastmlp import Layout, backward, backward_inputs, forward, take_rows, workspace
from relab.train.nets.mlps import adam_step

LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0
SHARES = 2  # of an update: threads that have something to do
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
    """Buffers of one learner; a first axis of 2 is the critic, or the half of the rows."""

    work_q: np.ndarray  # [2, ...] activations of the critics
    work_pi: np.ndarray  # of the actor at the observations, kept for its gradient
    work_next: np.ndarray  # of the actor at the successors
    some: np.ndarray  # of a critic, in some rows
    x_next: np.ndarray  # [rows * (obs + action)] what the critics see: successors and actions drawn there,
    x_data: np.ndarray  # transitions of the replay,
    x_new: np.ndarray  # and their observations with actions drawn anew
    slow_2N: np.ndarray  # Q1', Q2' of the successors
    q_2N: np.ndarray
    slope_NK: np.ndarray  # of the smaller critic, by the action
    d_action: np.ndarray  # [2, ...] the same, of each critic's own rows
    rows_2N: np.ndarray  # in which each critic is the smaller one
    next_NK: np.ndarray  # actions drawn at the successors
    next_logp_N: np.ndarray
    action_NK: np.ndarray  # and at the observations
    logp_N: np.ndarray
    y_N: np.ndarray  # targets of the critics
    d_q: np.ndarray  # [2, rows] gradients of the outputs
    d_pi: np.ndarray
    grad: np.ndarray  # of all parameters
    grad_half: np.ndarray  # of the actor's, from the second half of the rows
    sums: np.ndarray  # [2, 3] of each half: ln pi, std, greatest std
    norms: np.ndarray  # [2] of the critics' gradients


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
    critic, actor = workspace(rows, nets.q1).size, workspace(first_half(rows), nets.actor).size

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    return Room(
        work_q=zeros(2, critic), work_pi=zeros(2, actor), work_next=zeros(2, actor), some=zeros(2, critic),
        x_next=zeros(rows * inputs), x_data=zeros(rows * inputs), x_new=zeros(rows * inputs),
        slow_2N=zeros(2, rows), q_2N=zeros(2, rows), slope_NK=zeros(rows, components),
        d_action=zeros(2, rows * components),
        rows_2N=np.zeros((2, rows), np.int64), next_NK=zeros(rows, components), next_logp_N=zeros(rows),
        action_NK=zeros(rows, components), logp_N=zeros(rows), y_N=zeros(rows), d_q=zeros(2, rows),
        d_pi=zeros(rows * 2 * components), grad=zeros(weights), grad_half=zeros(weights), sums=np.zeros((2, 3)),
        norms=np.zeros(2),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def first_half(rows):
    return (rows + 1) // 2


@njit(cache=True, nogil=True)
def half(rows, share):
    """(first, behind the last) row of a half."""
    middle = first_half(rows)
    return (0, middle) if share == 0 else (middle, rows)


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


# ---- The shares of an update, in order; all of one stage must be over before the next begins


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
def draw_half(theta, nets, batch, noise_2NK, share, r):
    """Stage 1, half the rows: actions of the actor of now at the successors and at the observations."""
    a, b = half(batch.obs_ND.shape[0], share)
    inputs, n = nets.q1.sizes[0], b - a
    out = forward(theta, nets.actor, batch.next_ND[a:b].reshape(-1), n, r.work_next[share])
    squash(out, noise_2NK[0, a:b], r.next_NK[a:b], r.next_logp_N[a:b])
    join(batch.next_ND[a:b], r.next_NK[a:b], r.x_next[a * inputs : b * inputs])
    out = forward(theta, nets.actor, batch.obs_ND[a:b].reshape(-1), n, r.work_pi[share])
    squash(out, noise_2NK[1, a:b], r.action_NK[a:b], r.logp_N[a:b])
    join(batch.obs_ND[a:b], r.action_NK[a:b], r.x_new[a * inputs : b * inputs])
    join(batch.obs_ND[a:b], batch.action_NK[a:b], r.x_data[a * inputs : b * inputs])


@njit(cache=True, nogil=True)
def value(theta, net, x, work, q_N):
    """A critic's outputs, kept: the next call overwrites its activations."""
    out = forward(theta, net, x, q_N.size, work)
    for i in range(q_N.size):
        q_N[i] = out[i, 0]


@njit(cache=True, nogil=True)
def value_both(theta, target, nets, share, r):
    """Stage 2, one critic: its slow copy at the successors, itself at the transitions."""
    net = nets.q1 if share == 0 else nets.q2
    value(target, net, r.x_next, r.work_q[share], r.slow_2N[share])
    value(theta, net, r.x_data, r.work_q[share], r.q_2N[share])


@njit(cache=True, nogil=True)
def aim(batch, alpha, r, stats):
    """Between the stages 2 and 3: targets and errors of both critics."""
    n = r.y_N.size
    loss, away, q_sum, y_sum, y_max, leak = 0.0, 0.0, 0.0, 0.0, -np.inf, 0.0
    for i in range(n):
        soft_value = min(r.slow_2N[0, i], r.slow_2N[1, i]) - alpha * r.next_logp_N[i]
        r.y_N[i] = y = batch.return_N[i] + batch.discount_N[i] * soft_value
        one, two = r.q_2N[0, i] - y, r.q_2N[1, i] - y
        r.d_q[0, i], r.d_q[1, i] = one / n, two / n
        loss, away = loss + 0.5 * (one * one + two * two), away + 0.5 * (abs(one) + abs(two))
        q_sum, y_sum, y_max = q_sum + 0.5 * (r.q_2N[0, i] + r.q_2N[1, i]), y_sum + y, max(y_max, y)
        if batch.ended_N[i]:
            leak = max(leak, abs(y - batch.return_N[i]))
    stats[0], stats[1], stats[2], stats[3], stats[4], stats[5] = loss / n, away / n, q_sum / n, y_sum / n, y_max, leak


@njit(cache=True, nogil=True)
def learn_critic(theta, m, v, nets, adam, share, r):
    """Stage 3, one critic: its step of Adam, then its values of the actions drawn anew."""
    net, n = nets.q1 if share == 0 else nets.q2, r.y_N.size
    backward(theta, net, r.x_data, n, r.work_q[share], r.d_q[share], r.grad)
    a, b = net.weight[0], net.bias[net.bias.size - 1] + 1
    updates, lr, b1, b2, eps = adam
    r.norms[share] = adam_step(theta[a:b], r.grad[a:b], m[a:b], v[a:b], updates, lr, b1, b2, eps, np.inf)
    value(theta, net, r.x_new, r.work_q[share], r.q_2N[share])


@njit(cache=True, nogil=True)
def slopes(theta, nets, share, r):
    """Stage 4, one critic: dQ/da into r.slope_NK in the rows where it is the smaller one; no other row is computed."""
    net, rows_N, some, n, count = nets.q1 if share == 0 else nets.q2, r.rows_2N[share], r.some[share], r.y_N.size, 0
    for i in range(n):
        if (r.q_2N[0, i] <= r.q_2N[1, i]) == (share == 0):
            rows_N[count], count = i, count + 1
    take_rows(net, n, r.work_q[share], rows_N, count, some)
    for c in range(count):
        r.d_q[share, c] = np.float32(1.0)
    size, d_action = r.slope_NK.shape[1], r.d_action[share]
    backward_inputs(theta, net, count, some, r.d_q[share, :count], size, d_action)
    for c in range(count):
        for k in range(size):
            r.slope_NK[rows_N[c], k] = d_action[c * size + k]


@njit(cache=True, nogil=True)
def actor_half(theta, nets, batch, noise_2NK, alpha, share, r):
    """Stage 5, half the rows: dL_actor/dtheta, by the noise with which the actions were drawn."""
    n, size = r.slope_NK.shape
    a, b = half(n, share)
    grad = r.grad if share == 0 else r.grad_half
    out, d_pi = r.work_pi[share], r.d_pi[2 * a * size : 2 * b * size]
    start = (b - a) * nets.actor.sizes[1:-1].sum()
    out_NO = out[start : start + 2 * (b - a) * size].reshape(b - a, 2 * size)
    descend(out_NO, noise_2NK[1, a:b], r.action_NK[a:b], r.logp_N[a:b], r.slope_NK[a:b], alpha, n, d_pi, r.sums[share])
    backward(theta, nets.actor, batch.obs_ND[a:b].reshape(-1), b - a, out, d_pi, grad)


@njit(cache=True, nogil=True)
def descend(out_NO, noise_NK, action_NK, logp_N, slope_NK, alpha, n, d_out, sums):
    """dL_actor/d(outputs) of some of n rows into d_out; sums of ln pi and std, and the greatest std."""
    size = noise_NK.shape[1]
    sums[:] = 0.0
    for i in range(noise_NK.shape[0]):
        sums[0] += logp_N[i]
        for k in range(size):
            action, log_std = action_NK[i, k], cut(out_NO[i, size + k])
            std = math.exp(log_std)
            du = (2.0 * alpha * action - slope_NK[i, k] * (1.0 - action * action)) / n
            inside = LOG_STD_LOW <= out_NO[i, size + k] <= LOG_STD_HIGH
            d_out[(2 * i) * size + k] = du
            d_out[(2 * i + 1) * size + k] = du * std * noise_NK[i, k] - alpha / n if inside else 0.0
            sums[1], sums[2] = sums[1] + std, max(sums[2], std)


@njit(cache=True, nogil=True)
def learn_actor(theta, m, v, nets, adam, alpha, r, stats):
    """At the end: the actor's step of Adam by both halves' gradients, and what the update looked like."""
    (n, size), a, q_sum = r.slope_NK.shape, nets.actor.weight[0], 0.0
    grad = r.grad[a:]
    for i in range(grad.size):
        grad[i] += r.grad_half[a + i]
    for i in range(n):
        q_sum += min(r.q_2N[0, i], r.q_2N[1, i])
    logp_sum, std_sum, std_max = (
        r.sums[0, 0] + r.sums[1, 0],
        r.sums[0, 1] + r.sums[1, 1],
        max(r.sums[0, 2], r.sums[1, 2]),
    )
    stats[6], stats[7] = (alpha * logp_sum - q_sum) / n, -logp_sum / n
    stats[8], stats[9] = std_sum / (n * size), std_max
    stats[10] = math.hypot(r.norms[0], r.norms[1])
    updates, lr, b1, b2, eps = adam
    stats[11] = adam_step(theta[a:], grad, m[a:], v[a:], updates, lr, b1, b2, eps, np.inf)


# ---- All of it


@njit(cache=True, nogil=True)
def learn(theta, target, m, v, nets, batch, noise_2NK, alpha, adam, r, stats):
    """One step of Adam for the critics, then one for the actor, which sees them as they are now; Stats into `stats`.

    `adam`: (updates, lr, b1, b2, eps).
    """
    for share in range(SHARES):
        draw_half(theta, nets, batch, noise_2NK, share, r)
    for share in range(SHARES):
        value_both(theta, target, nets, share, r)
    aim(batch, alpha, r, stats)
    for share in range(SHARES):
        learn_critic(theta, m, v, nets, adam, share, r)
    for share in range(SHARES):
        slopes(theta, nets, share, r)
    for share in range(SHARES):
        actor_half(theta, nets, batch, noise_2NK, alpha, share, r)
    learn_actor(theta, m, v, nets, adam, alpha, r, stats)


def learn_by(crew: Crew, theta, target, m, v, nets, batch, noise_2NK, alpha, adam, r, stats):
    """`learn`, with the same bytes: the two shares of each stage at the same time."""
    crew.both(lambda share: draw_half(theta, nets, batch, noise_2NK, share, r))
    crew.both(lambda share: value_both(theta, target, nets, share, r))
    aim(batch, alpha, r, stats)
    crew.both(lambda share: learn_critic(theta, m, v, nets, adam, share, r))
    crew.both(lambda share: slopes(theta, nets, share, r))
    crew.both(lambda share: actor_half(theta, nets, batch, noise_2NK, alpha, share, r))
    learn_actor(theta, m, v, nets, adam, alpha, r, stats)
