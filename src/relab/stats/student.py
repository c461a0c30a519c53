"""How sure is a mean? Student's t: quantiles, the interval of one mean, and the functions under them."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
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


@lru_cache(maxsize=4096)
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
        if mid in (low, high):
            break
        low, high = (mid, high) if t_cdf(mid, df) < p else (low, mid)
    return (low + high) / 2


def t_quantiles(p: float, df: np.ndarray) -> np.ndarray:
    """t_quantile for many degrees of freedom (>= 1): interpolated in 1/df, to 1e-4 of the exact value."""
    df = np.asarray(df, np.float64)
    if df.size == 1:
        return np.full(df.shape, t_quantile(p, float(df.ravel()[0])))
    share, log_t = _t_table(p)
    return np.exp(np.interp(1 / df, share, log_t))


@lru_cache(maxsize=64)
def _t_table(p: float) -> tuple[np.ndarray, np.ndarray]:
    share = np.linspace(0, 1, 201)
    return share, np.log([t_quantile(p, 1 / max(float(x), 1e-9)) for x in share])


def normal_quantile(p: float) -> float:
    """The z for which P(Z <= z) = p."""
    return NormalDist().inv_cdf(p)


def chi2_quantile(p: float, df: float) -> float:
    """Wilson and Hilferty's cube, within 2 % for df >= 4: enough for a range of standard deviations."""
    spread = 2 / (9 * df)
    return df * (1 - spread + normal_quantile(p) * math.sqrt(spread)) ** 3


@lru_cache(maxsize=4096)
def f_quantile(p: float, df: int, other: int) -> float:
    """The f for which the ratio of two variances, of df and `other` degrees of freedom, is below it with chance p."""
    low, high = 0.0, 1.0  # of x = df f / (df f + other), whose distribution is a beta
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if beta_share(df / 2, other / 2, mid) < p else (low, mid)
    return other * low / (df * (1 - low))


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
