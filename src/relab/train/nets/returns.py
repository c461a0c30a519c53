"""What is a step worth? Advantages and returns as plain equations over [T, B] arrays (time first, rows independent).

At step t: reward r_t, value v_t = V(s_t), value of the successor vn_t = V(s_{t+1}): the *final* observation's value
where the episode was cut by time, 0 where it terminated. `ended_t`: the episode ended at t either way, the chain stops.
"""

from __future__ import annotations

import numpy as np

from relab.train.kernels.jit import njit


@njit(cache=True, nogil=True)
def gae(r_TB, v_TB, vn_TB, ended_TB, gamma, lam):
    """Generalised advantage estimation (Schulman et al. 2016).

    delta_t = r_t + gamma vn_t - v_t;   A_t = delta_t + gamma lam (1 - ended_t) A_{t+1};   A_T = 0.
    Returns A [T, B]; the value target is A + v.
    """
    T, B = r_TB.shape
    adv_TB, adv_B = np.empty((T, B), np.float32), np.zeros(B)
    for t in range(T - 1, -1, -1):
        for b in range(B):
            delta = r_TB[t, b] + gamma * vn_TB[t, b] - v_TB[t, b]
            adv_B[b] = delta + (0.0 if ended_TB[t, b] else gamma * lam * adv_B[b])
            adv_TB[t, b] = adv_B[b]
    return adv_TB


@njit(cache=True, nogil=True)
def discounted(r_TB, vn_TB, ended_TB, gamma):
    """Monte-Carlo returns: G_t = r_t + gamma G_{t+1}, with vn_t in place of G_{t+1} where the chain stops.

    The chain stops where the episode ended and at the last row, so a terminated episode gets no bootstrap (vn_t = 0)
    and one that was cut, by time or by the end of the batch, gets the critic's word for the rest.
    """
    T, B = r_TB.shape
    g_TB, g_B = np.empty((T, B), np.float32), np.zeros(B)
    for t in range(T - 1, -1, -1):
        for b in range(B):
            g_B[b] = r_TB[t, b] + gamma * (vn_TB[t, b] if ended_TB[t, b] or t == T - 1 else g_B[b])
            g_TB[t, b] = g_B[b]
    return g_TB


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's, NaN where one of them is constant."""
    if x.size < 2:
        return float("nan")
    x, y = x - x.mean(dtype=np.float64), y - y.mean(dtype=np.float64)
    size = float(np.sqrt((x @ x) * (y @ y)))
    return min(max(float(x @ y) / size, -1.0), 1.0) if size > 0 else float("nan")


def explained_variance(v: np.ndarray, target: np.ndarray) -> float:
    """EV = 1 - Var(target - v) / Var(target); NaN when the targets are all alike (nothing to explain)."""
    if target.size == 0 or target.min() == target.max():  # their computed variance may be 1e-34 instead of 0
        return float("nan")
    return 1.0 - float(np.var(target - v, dtype=np.float64) / np.var(target, dtype=np.float64))
