"""How sure is a number? Intervals on plain arrays: numbers in, numbers out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """An estimate and the range that holds the truth in `level` of all repetitions."""

    mid: float
    low: float
    high: float
    n: int
    level: float


def mean_interval(x: np.ndarray, level: float = 0.95) -> Interval:
    """Student's t interval of a mean: mean ± t sd / sqrt(n); not defined (NaN) under two samples."""
    x = np.asarray(x, np.float64)
    n, mid = len(x), float(np.mean(x)) if len(x) else math.nan
    if n < 2:
        return Interval(mid, math.nan, math.nan, n, level)
    half = t_quantile(0.5 + level / 2, n - 1) * float(x.std(ddof=1)) / math.sqrt(n)
    return Interval(mid, mid - half, mid + half, n, level)


def t_quantile(p: float, df: float) -> float:
    """The t for which P(T <= t) = p, by bisection of the distribution function."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs a probability between 0 and 1, but got p = {p}")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        high *= 2
    for _ in range(100):
        mid = (low + high) / 2
        low, high = (mid, high) if t_cdf(mid, df) < p else (low, mid)
    return (low + high) / 2


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) for t >= 0: 1 - I_x(df/2, 1/2) / 2 with x = df / (df + t²)."""
    return 1 - 0.5 * beta_share(df / 2, 0.5, df / (df + t * t))


def beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d, f = 1.0, 0.0, 1.0
    for i in range(400):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d if abs(1 + term * d) > 1e-300 else 1e-300)
        c = 1 + term / c if abs(1 + term / c) > 1e-300 else 1e-300
        f *= c * d
        if abs(1 - c * d) < 1e-15 and i > 1:
            break
    return front * (f - 1)
