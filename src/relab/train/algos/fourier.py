"""What are the features, and how are sums over millions of cosines made in milliseconds?

    critic  phi(s, a) = [sqrt(2/F) cos(W [o; a; 1] + b), caught, good, bad, |a|^2], F = N - 4   (Rahimi, Recht 2007)
    actor   psi(s) = tanh(V o + c), its norm cut to psi_clip

Features are float32, sums over them float64. A kernel works world by world and keeps one row of features in cache; no
[rows, N] matrix is made in training. World b's sums are the same whatever the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.base.streams import generator
from relab.train.envs.torus import EVENTS, OBS
from relab.train.kernels.crew import Crew
from relab.train.kernels.jit import njit

ACTION = 2
EXTRA = 4  # caught, good goblet, bad goblet, |a|^2
TEACHER = (-1.0, 1.0, -1.0, -0.1)  # what the teacher pays for them

_INV = np.float32(1.0 / (2.0 * math.pi))
_ROUND = np.float32(12582912.0)  # 1.5 * 2**23: adding it rounds to an integer
_HIGH, _LOW = np.float32(6.28125), np.float32(2.0 * math.pi - 6.28125)  # 2 pi in two parts, the first exact
_QUARTER, _ONE = np.float32(math.pi / 2.0), np.float32(1.0)
_C3, _C5, _C7, _C9, _C11 = (np.float32(x) for x in (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800))
# tanh on [-7.9, 7.9] as a ratio of polynomials (the coefficients that Eigen uses)
_FAR = np.float32(7.90531110763549805)
_A1, _A3, _A5, _A7 = (
    np.float32(x) for x in (4.89352455891786e-3, 6.37261928875436e-4, 1.48572235717979e-5, 5.12229709037114e-8)
)
_A9, _A11, _A13 = (np.float32(x) for x in (-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16))
_B0, _B2, _B4, _B6 = (
    np.float32(x) for x in (4.89352518554385e-3, 2.26843463243900e-3, 1.18534705686654e-4, 1.19825839466702e-6)
)
EXACT = {"contract"}  # the rounding trick must not be simplified away
FAST = {"contract", "reassoc", "nsz"}  # sums may be taken eight at a time


class Critic(NamedTuple):
    """The random projection of the critic."""

    weight_XF: np.ndarray  # float32[20, F]: a row per observation and action component
    bias_F: np.ndarray  # float32[F]: b, and the weight of the constant 1

    @property
    def size(self) -> int:
        return len(self.bias_F) + EXTRA


class Actor(NamedTuple):
    """The random layer of the policies."""

    weight_XP: np.ndarray  # float32[18, P]
    bias_P: np.ndarray  # float32[P]
    clip: float


def make_critic(seed: int, size: int) -> Critic:
    draws, random = generator(seed, "features/critic"), size - EXTRA
    weight = draws.standard_normal((random, OBS + ACTION + 1))
    bias = draws.uniform(0.0, 2.0 * math.pi, random) + weight[:, -1]
    return Critic(np.ascontiguousarray(weight[:, :-1].T, np.float32), bias.astype(np.float32))


def make_actor(seed: int, size: int, clip: float) -> Actor:
    draws = generator(seed, "features/actor")
    weight = draws.standard_normal((OBS, size)) / math.sqrt(OBS)
    return Actor(weight.astype(np.float32), (0.1 * draws.standard_normal(size)).astype(np.float32), clip)


def make_teacher(seed: int, size: int, scale: float) -> np.ndarray:
    return np.concatenate((scale * generator(seed, "teacher").standard_normal(size - EXTRA), TEACHER))


def psi(actor: Actor, obs_BD: np.ndarray) -> np.ndarray:
    """float32[B, P]: the actor's features."""
    psi_BP = np.empty((len(obs_BD), len(actor.bias_P)), np.float32)
    actor_rows(np.ascontiguousarray(obs_BD, np.float32), actor.weight_XP, actor.bias_P, actor.clip, psi_BP)
    return psi_BP


@njit(cache=True, nogil=True, fastmath=EXACT)
def tangent(x):
    """tanh of a float32, good to 4e-7."""
    x = min(max(x, -_FAR), _FAR)
    s = x * x
    top = x * (_A1 + s * (_A3 + s * (_A5 + s * (_A7 + s * (_A9 + s * (_A11 + s * _A13))))))
    return top / (_B0 + s * (_B2 + s * (_B4 + s * _B6)))


@njit(cache=True, nogil=True, fastmath=FAST)
def actor_rows(obs_BD, weight_XP, bias_P, clip, psi_BP):
    for i in range(obs_BD.shape[0]):
        row_P, square = psi_BP[i], 0.0
        project(obs_BD[i], weight_XP, bias_P, row_P)
        for j in range(row_P.shape[0]):
            row_P[j] = tangent(row_P[j])
        for j in range(row_P.shape[0]):
            square += np.float64(row_P[j]) * np.float64(row_P[j])
        factor = np.float32(min(1.0, clip / math.sqrt(max(square, 1e-300))))
        for j in range(row_P.shape[0]):
            row_P[j] *= factor


@njit(cache=True, nogil=True)
def mean_rows(psi_BP, theta_AP, mean_BA):
    """theta^T psi / sqrt(P)."""
    root = math.sqrt(psi_BP.shape[1])
    for i in range(psi_BP.shape[0]):
        for a in range(theta_AP.shape[0]):
            mean_BA[i, a] = dot(theta_AP[a], psi_BP[i]) / root


@njit(cache=True, nogil=True)
def pull_rows(psi_BP, pull_BA, sum_AP):
    """sum_i pull psi, a row per action component."""
    for i in range(psi_BP.shape[0]):
        for a in range(sum_AP.shape[0]):
            add(pull_BA[i, a], psi_BP[i], sum_AP[a])


# ---- The critic's features


@njit(cache=True, nogil=True, fastmath=EXACT)
def cosine(x):
    """cos of a float32 of moderate size, good to 2e-7: x mod 2 pi, then a sine series on [-pi/2, pi/2]."""
    turns = (x * _INV + _ROUND) - _ROUND
    y = _QUARTER - abs((x - turns * _HIGH) - turns * _LOW)
    s = y * y
    return y * (_ONE + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * _C11)))))


@njit(cache=True, nogil=True, fastmath=FAST)
def project(obs_D, weight_XF, bias_F, base_F):
    """base = W_o o + b: what all actions in one state share."""
    for j in range(bias_F.shape[0]):
        base_F[j] = bias_F[j]
    for d in range(obs_D.shape[0]):
        x = obs_D[d]
        for j in range(bias_F.shape[0]):
            base_F[j] += x * weight_XF[d, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def features(base_F, obs_D, x, y, weight_XF, phi_N):
    """phi of one state and action."""
    size = base_F.shape[0]
    scale = np.float32(math.sqrt(2.0 / size))
    for j in range(size):
        phi_N[j] = scale * cosine(base_F[j] + x * weight_XF[OBS, j] + y * weight_XF[OBS + 1, j])
    for k in range(3):
        phi_N[size + k] = obs_D[EVENTS + k]
    phi_N[size + 3] = x * x + y * y


@njit(cache=True, nogil=True, fastmath=FAST)
def dot(w_N, phi_N):
    total = 0.0
    for j in range(w_N.shape[0]):
        total += w_N[j] * phi_N[j]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def add(c, phi_N, sum_N):
    for j in range(phi_N.shape[0]):
        sum_N[j] += c * phi_N[j]


@njit(cache=True, nogil=True, fastmath=FAST)
def fill(obs_BD, action_BKA, weight_XF, bias_F, mean_BN):
    """The mean of phi over the K actions of each row, into float32[B, N]; K = 1 gives phi itself."""
    draws = action_BKA.shape[1]
    base_F, phi_N, sum_N = np.empty_like(bias_F), np.empty_like(mean_BN[0]), np.empty(mean_BN.shape[1])
    for i in range(obs_BD.shape[0]):
        project(obs_BD[i], weight_XF, bias_F, base_F)
        sum_N[:] = 0.0
        for k in range(draws):
            features(base_F, obs_BD[i], action_BKA[i, k, 0], action_BKA[i, k, 1], weight_XF, phi_N)
            add(1.0 / draws, phi_N, sum_N)
        for j in range(sum_N.shape[0]):
            mean_BN[i, j] = np.float32(sum_N[j])


def phi(
    critic: Critic, obs_BD: np.ndarray, action_BKA: np.ndarray, crew: Crew | None = None, room: np.ndarray | None = None
) -> np.ndarray:
    """float32[B, N]: the critic's features, averaged over the K actions given for each row; in `room`, if given."""
    features: np.ndarray = np.empty((len(obs_BD), critic.size), np.float32) if room is None else room
    rows = [np.ascontiguousarray(x, np.float32) for x in (obs_BD, action_BKA)]
    size = crew.size if crew else 1
    cut = np.linspace(0, len(features), size + 1).astype(int)

    def work(k: int) -> None:
        mine = slice(cut[k], cut[k + 1])
        fill(rows[0][mine], rows[1][mine], *critic, features[mine])

    crew.share(work, size) if crew else work(0)
    return features


# ---- One pass over the batch


@njit(cache=True, nogil=True, fastmath=FAST)
def temporal(worker, workers, obs_TBD, action_TBA, next_TBKA, rho_TB, world_TB, teacher_N, w_N, weight_XF, bias_F,
             gamma, reward_TB, delta_TB, grad_BN):  # fmt: skip
    """For this worker's worlds: r, delta = r + gamma mean_k Q(s', a'_k) - Q(s, a), and sum_t rho delta phi per world.

    obs_TBD has T + 1 rows. A teacher without weights (size 0) leaves the rewards as given.
    """
    T, B, K = action_TBA.shape[0], action_TBA.shape[1], next_TBKA.shape[2]
    root = math.sqrt(w_N.shape[0])
    now_F, then_F, phi_N = np.empty_like(bias_F), np.empty_like(bias_F), np.empty(w_N.shape[0], np.float32)
    for b in range(worker, B, workers):
        grad_BN[b] = 0.0
        project(obs_TBD[0, b], weight_XF, bias_F, now_F)
        for t in range(T):
            ahead = 0.0
            project(obs_TBD[t + 1, b], weight_XF, bias_F, then_F)
            if gamma > 0.0:
                for k in range(K):
                    features(then_F, obs_TBD[t + 1, b], next_TBKA[t, b, k, 0], next_TBKA[t, b, k, 1], weight_XF, phi_N)
                    ahead += dot(w_N, phi_N)
            features(now_F, obs_TBD[t, b], action_TBA[t, b, 0], action_TBA[t, b, 1], weight_XF, phi_N)
            reward_TB[t, b] = dot(teacher_N, phi_N) / root if teacher_N.shape[0] else world_TB[t, b]
            delta_TB[t, b] = reward_TB[t, b] + (gamma * ahead / K - dot(w_N, phi_N)) / root
            add(rho_TB[t, b] * delta_TB[t, b], phi_N, grad_BN[b])
            now_F, then_F = then_F, now_F
