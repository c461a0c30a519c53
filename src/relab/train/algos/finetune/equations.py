"""What do fine-tuning's numbers mean? Weights, expectiles, returns of n steps, and how sure an advantage is.

Plain functions of arrays; every one is held against numbers made by hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


def awr_weights(adv: np.ndarray, beta: float, cap: float) -> np.ndarray:
    """w = min(exp(A / beta), cap) (Peng et al. 2019)."""
    return np.exp(np.minimum(adv.astype(np.float64) / beta, np.log(cap))).astype(np.float32)


def effective_share(w: np.ndarray) -> float:
    """(sum w)² / (n sum w²): 1 where all weights are alike, 1 / n where one row decides."""
    w = w.astype(np.float64)
    return float(w.sum() ** 2 / (len(w) * (w @ w)))


def expectile_loss(diff: Tensor, tau: float) -> Tensor:
    """|tau - 1[diff < 0]| diff², diff = Q - V: at tau = 1/2 half the squared error, near 1 V follows the best of Q."""
    return torch.where(diff < 0, 1 - tau, tau) * diff.square()


def expectile_of(diff: np.ndarray) -> float:
    """tau = E[diff-] / (E[diff+] + E[diff-]), diff = Q - V: where the expectile loss has its least value, for its slope
    by V is (1 - tau) E[diff-] - tau E[diff+] = 0. NaN where there is no difference."""
    below, above = np.maximum(-diff, 0).mean(dtype=np.float64), np.maximum(diff, 0).mean(dtype=np.float64)
    return float(below / (below + above)) if below + above > 0 else np.nan


class Ahead(NamedTuple):
    """Returns of up to n steps, each ending with its episode, and what is bootstrapped behind them."""

    total: np.ndarray  # [T, B]: sum of gamma^k r
    discount: np.ndarray  # [T, B]: of the value behind the last step: gamma^k, 0 behind a termination
    last: np.ndarray  # [T, B]: the row t of the last step, whose successor is bootstrapped


def n_step_returns(r_TB: np.ndarray, terminated_TB: np.ndarray, ended_TB: np.ndarray, n: int, gamma: float) -> Ahead:
    """G_t = r_t + ... + gamma^(k-1) r_(t+k-1), k = n or fewer where the episode ends or the data does."""
    T, B = r_TB.shape
    total, discount = np.zeros((T, B)), np.ones((T, B))
    last, open_ = np.tile(np.arange(T)[:, None], (1, B)), np.ones((T, B), bool)
    for k in range(min(n, T)):
        rows = np.zeros((T, B), bool)
        rows[: T - k] = open_[: T - k]
        t, b = np.nonzero(rows)
        total[t, b] += discount[t, b] * r_TB[t + k, b]
        discount[t, b] *= np.where(terminated_TB[t + k, b], 0.0, gamma)
        last[t, b] = t + k
        open_[t, b] = ~ended_TB[t + k, b]
    return Ahead(total.astype(np.float32), discount.astype(np.float32), last)


class Certainty(NamedTuple):
    """How sure the advantages of re-rollouts are; NaN with one sample each."""

    noise: float  # standard error of one state's advantage, root of the mean square over states
    snr: float  # variance that is not noise, over that of the noise
    rank: float  # Spearman's correlation of one half of the samples with the other


def certainty(q_SN: np.ndarray, v_SN: np.ndarray, common: bool, antithetic: bool = False) -> Certainty:
    """A = mean Q - mean V of N samples each; paired samples (common random numbers) have the noise of differences, and
    of antithetic ones (2k, 2k + 1) only the mean of two is a sample."""
    if antithetic:
        q_SN, v_SN = (x.reshape(len(x), -1, 2).mean(2) for x in (q_SN, v_SN))
    n = q_SN.shape[1]
    if n < 2 or len(q_SN) < 2:
        return Certainty(np.nan, np.nan, np.nan)
    diff_SN = q_SN - v_SN
    spread_S = diff_SN.var(1, ddof=1) if common else q_SN.var(1, ddof=1) + v_SN.var(1, ddof=1)
    noise = float(spread_S.mean() / n)
    signal = max(float(diff_SN.mean(1).var(ddof=1)) - noise, 0.0)
    half = n // 2
    rank = spearman(diff_SN[:, :half].mean(1), diff_SN[:, half : 2 * half].mean(1))
    return Certainty(noise**0.5, signal / noise if noise > 0 else np.nan, rank)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation of the ranks, equals sharing theirs; NaN where all are equal."""
    a, b = (ranks(each) - (len(each) - 1) / 2 for each in (x, y))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else np.nan


def ranks(x: np.ndarray) -> np.ndarray:
    """0 for the smallest; equals share the mean of their places."""
    order = np.argsort(x, kind="stable")
    _, first, count = np.unique(x[order], return_index=True, return_counts=True)
    placed = np.empty(len(x))
    placed[order] = np.repeat(first + (count - 1) / 2, count)
    return placed


def cut_bias(gamma: float, cut: int, low: float, high: float, horizon: int | None) -> float:
    """Most that the steps behind a cut can be worth: gamma^cut max|r| (1 + gamma + ...), up to the time limit."""
    left = np.inf if horizon is None else max(horizon - cut, 0)
    each = 1.0 / (1.0 - gamma) if gamma < 1 else np.inf
    steps = min(float(left), each if gamma == 1 else each * (1 - gamma**left))
    return float(gamma**cut * max(abs(low), abs(high)) * steps) if steps else 0.0
