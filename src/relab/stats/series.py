"""Does a curve rise or fall, more than its own noise? OLS slope, with neighbours that are alike counted as fewer."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.stats.student import t_cdf, t_quantile


class Slope(NamedTuple):
    """Change of y per unit of x."""

    slope: float
    low: float
    high: float
    p: float  # two-sided, against no slope
    rho: float  # lag-1 autocorrelation of the residuals
    n_eff: float  # n (1 - rho) / (1 + rho)
    n: int


def slope(x: np.ndarray, y: np.ndarray, level: float = 0.95) -> Slope:
    """OLS slope; its error from n_eff points (Santer et al. 2000). No interval (NaN) under an n_eff of 3."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    keep = np.isfinite(x) & np.isfinite(y)
    x, y, n = x[keep], y[keep], int(keep.sum())
    if n < 3 or np.ptp(x) == 0:
        return Slope(math.nan, math.nan, math.nan, math.nan, math.nan, float(n), n)
    dx = x - x.mean()
    fit = float((dx * y).sum() / (dx * dx).sum())
    rest = y - y.mean() - fit * dx
    rho = autocorrelation(rest)
    n_eff = n * (1 - rho) / (1 + rho)
    if n_eff < 3:
        return Slope(fit, math.nan, math.nan, math.nan, rho, n_eff, n)
    se = math.sqrt(float((rest * rest).sum()) / (n_eff - 2) / float((dx * dx).sum()))
    return _with_error(fit, se, rho, n_eff, n, level)


def _with_error(fit: float, se: float, rho: float, n_eff: float, n: int, level: float) -> Slope:
    half = t_quantile(0.5 + level / 2, n_eff - 2) * se
    p = 2 * (1 - t_cdf(abs(fit) / se, n_eff - 2)) if se > 0 else float(fit == 0)
    return Slope(fit, fit - half, fit + half, p, rho, n_eff, n)


def autocorrelation(rest: np.ndarray) -> float:
    """Lag-1 autocorrelation of residuals, not under 0 (to gain points by it would be brave), corrected by 1 / n.

    The raw estimate is too low by about (1 + 4 rho) / n, because the line has eaten part of the drift.
    """
    n, total = len(rest), float((rest * rest).sum())
    if total <= 0:
        return 0.0
    raw = float((rest[1:] * rest[:-1]).sum()) / total
    return min(max((raw * n + 1) / (n - 4) if n > 8 else raw, 0.0), 0.99)
