"""How far can a mean, or a difference of means, be off? Few seeds, skewed outcomes; samples on the last axis.

Why not plain Welch: where one arm is nearly constant and the other skewed (a solved task against one that fails now
and then) it covers .87 instead of .95. Hall's transformation (1992) mends that, and is itself too narrow for heavy
tails. The wider of both ends covers in all shapes that docs/statistics.md lists, at 5 to 15 % more width. Whether 0 is
left out between two arms is decided by stronger tests (compare_means.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from relab.stats.student import Interval, normal_quantile, t_quantiles

Ends = tuple[np.ndarray, np.ndarray]
MOST = 2.5


class Moments(NamedTuple):
    """What an interval needs of a difference: its estimate, variance, third cumulant and degrees of freedom."""

    mid: np.ndarray
    var: np.ndarray
    skew: np.ndarray  # third cumulant of the estimate over var ** 1.5
    df: np.ndarray


def size_of_difference(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Interval:
    """mean(b) - mean(a): Welch's t widened by Hall's skewness correction. For how large a difference is, from two seeds
    on; whether there is one is for compare_means.difference to say."""
    return _interval(careful(clean(a, "a"), clean(b, "b")), min(len(a), len(b)), level)


def _interval(estimate: Moments, n: int, level: float) -> Interval:
    low, high = widened(estimate, level)
    return Interval(float(estimate.mid), float(low), float(high), n, level)


def clean(x: np.ndarray, name: str) -> np.ndarray:
    x = np.asarray(x, np.float64)
    if len(x) < 2 or not np.isfinite(x).all():
        bad = int(np.sum(~np.isfinite(x)))
        raise ValueError(f"`{name}` needs two or more finite numbers, but has {len(x)} with {bad} not finite")
    return x


# ---- Moments of an estimate; rows of many samples are fine


def one_sample(x: np.ndarray) -> Moments:
    """The mean of the last axis."""
    n = x.shape[-1]
    var = x.var(-1, ddof=1) / n
    return Moments(x.mean(-1), var, ratio_or_zero(third(x), var**1.5), np.full(np.shape(var), n - 1.0))


def two_samples(a: np.ndarray, b: np.ndarray) -> Moments:
    """mean(b) - mean(a) with Welch's degrees of freedom."""
    n, m = a.shape[-1], b.shape[-1]
    va, vb = a.var(-1, ddof=1) / n, b.var(-1, ddof=1) / m
    var = va + vb
    df = np.maximum(ratio_or_zero(var**2, va**2 / (n - 1) + vb**2 / (m - 1)), min(n, m) - 1.0)
    return Moments(b.mean(-1) - a.mean(-1), var, ratio_or_zero(third(b) - third(a), var**1.5), df)


def careful(a: np.ndarray, b: np.ndarray) -> Moments:
    """two_samples, but with unequal numbers the variance is not taken as less than that of arms with one spread.

    Five seeds may all miss what a fifth of the runs does; twenty of the other arm have seen it (5 against 20 seeds of
    the same arm: a winner in 17 % of all trials without this).
    """
    welch, n, m = two_samples(a, b), a.shape[-1], b.shape[-1]
    if n == m:
        return welch
    pooled = (a.var(-1) * n + b.var(-1) * m) / (n + m - 2) * (1 / n + 1 / m)
    var = np.maximum(welch.var, pooled)
    return welch._replace(var=var, skew=ratio_or_zero(third(b) - third(a), var**1.5))


def third(x: np.ndarray) -> np.ndarray:
    """Third cumulant of the mean, from the unbiased estimate; 0 under three samples."""
    n = x.shape[-1]
    if n < 3:
        return np.zeros(x.shape[:-1])
    cubes = ((x - x.mean(-1, keepdims=True)) ** 3).sum(-1)
    return cubes * n / ((n - 1) * (n - 2)) / n**2


def ratio_or_zero(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """0 where nothing varies."""
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 0.0)


# ---- Ends of an interval


def plain(estimate: Moments, level: float) -> Ends:
    """mid ± t sqrt(var)."""
    half = t_quantiles(0.5 + level / 2, estimate.df) * np.sqrt(estimate.var)
    return estimate.mid - half, estimate.mid + half


def hall(estimate: Moments, level: float) -> Ends:
    """mid - sqrt(var) g⁻¹(±t), where g takes the skewness out of the t statistic (Hall 1992)."""
    t, se = t_quantiles(0.5 + level / 2, estimate.df), np.sqrt(estimate.var)
    return estimate.mid - se * _unskew(t, estimate.skew), estimate.mid - se * _unskew(-t, estimate.skew)


def _unskew(t: np.ndarray, k: np.ndarray) -> np.ndarray:
    """g⁻¹(t) = (3 / k) (cbrt(1 + k (t - k / 6)) - 1), which is t at k = 0."""
    safe = np.where(np.abs(k) < 1e-6, 1e-6, k)
    return 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1)


def widened(estimate: Moments, level: float) -> Ends:
    """The wider end of both on each side, but no further than MOST times the plain one: where a moderate skewness just
    turns the sign under Hall's cube root, his end is four times as far, and covers hardly more."""
    (low, high), (other_low, other_high) = plain(estimate, level), hall(estimate, level)
    far = MOST * (high - low) / 2
    return (
        np.minimum(low, np.maximum(other_low, estimate.mid - far)),
        np.maximum(high, np.minimum(other_high, estimate.mid + far)),
    )


# ---- Many tasks; ranks


def iqm(x: np.ndarray) -> float:
    """Interquartile mean: the mean without the lowest and the highest floor(n / 4) numbers."""
    x = np.sort(np.asarray(x, np.float64).ravel())
    cut = len(x) // 4
    return float(x[cut : len(x) - cut].mean()) if len(x) else math.nan


def iqm_interval(tasks: Sequence[np.ndarray], level: float = 0.95, reps: int = 2000, seed: int = 0) -> Interval:
    """IQM over runs of several tasks; percentile bootstrap that draws seeds again within each task.

    For many tasks: with one task of five seeds such an interval covers .93 or less, see docs/statistics.md.
    """
    pooled = np.concatenate([np.asarray(task, np.float64) for task in tasks])
    low, high = np.quantile(bootstrap(tasks, _iqm_rows, reps, seed), [0.5 - level / 2, 0.5 + level / 2])
    return Interval(iqm(pooled), float(low), float(high), len(pooled), level)


def bootstrap(tasks: Sequence[np.ndarray], of: Callable[[np.ndarray], np.ndarray], reps: int, seed: int) -> np.ndarray:
    """`of` on `reps` stratified resamples, each a row."""
    rng = np.random.default_rng(seed)
    drawn = [np.asarray(task, np.float64)[rng.integers(0, len(task), (reps, len(task)))] for task in tasks]
    return of(np.concatenate(drawn, 1))


def _iqm_rows(x: np.ndarray) -> np.ndarray:
    x, cut = np.sort(x, 1), x.shape[1] // 4
    return x[:, cut : x.shape[1] - cut].mean(1)


def improvement(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Interval:
    """P(b > a) + P(b = a) / 2 for one run of each, with Newcombe's score interval (2006, method 5): not 0 wide at 1."""
    a, b = clean(a, "a"), clean(b, "b")
    mid = float(improved(a, b))
    low, high = improvement_ends(np.array([mid]), len(a), len(b), level)
    return Interval(mid, float(low[0]), float(high[0]), min(len(a), len(b)), level)


def improved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The share of pairs in which b is larger, ties half; over the last axis."""
    x, y = a[..., :, None], b[..., None, :]
    return ((y > x) + 0.5 * (y == x)).mean((-1, -2))


def improvement_ends(mid: np.ndarray, n: int, m: int, level: float) -> Ends:
    """Both θ with (θ - mid)² = z² var(θ), by bisection on either side of mid."""
    z2 = normal_quantile(0.5 + level / 2) ** 2
    more = (n + m) / 2 - 1

    def outside(theta: np.ndarray) -> np.ndarray:
        spread = theta * (1 - theta) * (1 + more * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (n * m)
        return (theta - mid) ** 2 > z2 * spread

    return _edge(outside, np.zeros_like(mid), mid), _edge(outside, np.ones_like(mid), mid)


def _edge(outside: Callable[[np.ndarray], np.ndarray], out: np.ndarray, inside: np.ndarray) -> np.ndarray:
    for _ in range(50):
        half = (out + inside) / 2
        beyond = outside(half)
        out, inside = np.where(beyond, half, out), np.where(beyond, inside, half)
    return (out + inside) / 2
