"""Could the labels have fallen so by chance? Welch's t over all ways to deal the outcomes to the two arms.

Where both arms are alike every deal is as likely as the one seen, whatever the shape of the outcomes: the error is then
exact, where Student's quantile is only right for normal ones (at five seeds below a ceiling Welch errs in 2 % where 5 %
are allowed, and pays for it in power). Studentised, so that arms of unlike spread are nearly right too (Janssen 1997).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

DEALS = 20_000  # all of them up to here (8 + 8 seeds), beyond as many drawn ones
FAR = 1e12  # t of arms that do not vary and differ
TIE = 1e-7  # deals whose t differ by rounding alone are one
ROWS = 2**22  # numbers held at a time


def finest(n: int, m: int) -> float:
    """The smallest two-sided p that there can be; never so small that arithmetic would lose it."""
    return max(2 / comb(n + m, n), 1e-9)


@lru_cache(maxsize=16)
def deals(n: int, m: int, most: int = DEALS) -> np.ndarray:
    """[deals, n + m]: 1 where an outcome goes to the second arm; the first row is the deal as it was."""
    seen = np.concatenate([np.zeros(n), np.ones(m)])
    if comb(n + m, m) <= most:
        rows = np.zeros((comb(n + m, m), n + m))
        for row, places in zip(rows, combinations(range(n + m), m), strict=True):
            row[list(places)] = 1.0
        return rows[::-1].copy()  # the last combination is the deal as it was
    rng = np.random.default_rng([n, m])
    drawn = np.argsort(rng.random((most - 1, n + m)), 1) < m
    return np.concatenate([seen[None], drawn.astype(np.float64)])


def critical(a: np.ndarray, b: np.ndarray, alpha: float, most: int = DEALS) -> tuple[np.ndarray, np.ndarray]:
    """(lowest, highest) t that is not significant at two-sided alpha, for each row; infinite where none can be."""
    step = max(1, ROWS // len(deals(a.shape[-1], b.shape[-1], most)))
    rows = [_critical(a[at : at + step], b[at : at + step], alpha, most) for at in range(0, len(a), step)]
    return np.concatenate([low for low, _ in rows]), np.concatenate([high for _, high in rows])


def _critical(a: np.ndarray, b: np.ndarray, alpha: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    t = statistics(a, b, most)
    count = t.shape[1]
    k = int(np.floor(alpha / 2 * count + 1e-9))  # deals that may lie beyond
    if k < 1:
        return np.full(len(a), -np.inf), np.full(len(a), np.inf)
    low = np.partition(t, k, 1)[:, k]
    high = np.partition(t, count - 1 - k, 1)[:, count - 1 - k]
    low, high = low - TIE * (1 + np.abs(low)), high + TIE * (1 + np.abs(high))
    return np.where(low <= -FAR, -np.inf, low), np.where(high >= FAR, np.inf, high)


def statistics(a: np.ndarray, b: np.ndarray, most: int = DEALS) -> np.ndarray:
    """[rows, deals]: Welch's t of each deal."""
    n, m = a.shape[-1], b.shape[-1]
    dealt = deals(n, m, most).T
    x = np.concatenate([a, b], -1)
    x = x - x.mean(-1, keepdims=True)
    x = x / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-300)
    sum_b, squares_b = x @ dealt, (x * x) @ dealt
    sum_a, squares_a = x.sum(-1)[:, None] - sum_b, (x * x).sum(-1)[:, None] - squares_b
    delta = sum_b / m - sum_a / n
    var = _spread(sum_a, squares_a, n) + _spread(sum_b, squares_b, m)
    constant = var < 1e-24
    return np.where(constant, np.where(np.abs(delta) > 1e-12, np.sign(delta) * FAR, 0.0),
                    delta / np.sqrt(np.where(constant, 1.0, var)))  # fmt: skip


def _spread(total: np.ndarray, squares: np.ndarray, n: int) -> np.ndarray:
    """Variance of the mean of n numbers with this sum and sum of squares."""
    return np.maximum(squares - total**2 / n, 0.0) / (n - 1) / n
