"""Did runs solve it or fail? Outcomes in two humps are counts, and counts have an exact test.

Barnard's test with the pooled z statistic (Suissa and Shuster 1985): the chance of a difference as clear as this one,
at the common rate that makes it largest. At five seeds it tells 5 of 5 from 1 of 5 at 2.5 %, where Fisher's test needs
5 of 5 against none. The interval of the two rates inverts the exact score test (Chan and Zhang 1999), times the
distance of the humps; whether it leaves out 0 is for Barnard's test to say.

Two groups of numbers are not yet solve and fail. Where each variant keeps to a group of its own, they are counts only
if something says so: there are just two values, or a group lies at a bound of what is possible (`counted`).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from relab.stats.rates import score_ends
from relab.stats.student import normal_quantile

ANY = (-math.inf, math.inf)
APART = 0.25  # a hump is at most this wide, in gaps between the two
MOST = 60  # seeds a variant up to which all tables are gone through
RATES = np.linspace(0.0, 1.0, 201)[1:-1]
HAIR = 0.01  # of the gap: how far an end is put from 0 where the exact test alone leaves 0 out
EDGE = 0.05  # of the gap: a hump this close to a bound is at it
STEP, COMMON = 0.01, 65  # grids of the difference of rates and of the rate that stays unknown, for exact ends
MOST_EXACT = 60  # seeds of both variants together up to which ends are exact
ENOUGH = 0.96  # of what deals would tell: where counts tell as much, they decide


class Humps(NamedTuple):
    """Which outcomes are in the upper hump, and how far the humps lie apart; per row."""

    two: np.ndarray  # bool: whether there are two at all
    high_a: np.ndarray  # runs in the upper one
    high_b: np.ndarray
    gap: np.ndarray  # between the means of the humps
    exact: np.ndarray  # bool: just two values, so that nothing is to be learned within a hump
    mixed: np.ndarray  # bool: some arm has runs in both


def humps(a: np.ndarray, b: np.ndarray) -> Humps:
    """Cut both arms' outcomes together at their widest gap; who belongs to which arm plays no part in it."""
    x = np.sort(np.concatenate([a, b], -1), -1)
    gaps = np.diff(x, axis=-1)
    cut = gaps.argmax(-1)
    low_end, high_end = _at(x, cut), _at(x, cut + 1)
    widest = _at(gaps, cut)
    within = np.maximum(low_end - x[..., 0], x[..., -1] - high_end)
    edge = ((low_end + high_end) / 2)[..., None]
    count, total = (x > edge).sum(-1), x.shape[-1]
    two = (widest > 0) & (within <= APART * widest) & (count >= 2) & (total - count >= 2)
    upper = np.where(x > edge, x, 0.0).sum(-1) / np.maximum(count, 1)
    lower = np.where(x > edge, 0.0, x).sum(-1) / np.maximum(total - count, 1)
    exact = two & (within <= 1e-9 * widest)
    high_a, high_b = (a > edge).sum(-1), (b > edge).sum(-1)
    mixed = two & ~(((high_a == 0) | (high_a == a.shape[-1])) & ((high_b == 0) | (high_b == b.shape[-1])))
    return Humps(two, high_a, high_b, upper - lower, exact, mixed)


def counted(a: np.ndarray, b: np.ndarray, split: Humps, bounds: tuple[float, float] = ANY) -> np.ndarray:
    """Whether humps are solve and fail, so that a run may end in either: one arm did both, or there are just two
    values, or a hump lies at the lowest or highest value there can be."""
    near = EDGE * split.gap
    top, bottom = np.maximum(a.max(-1), b.max(-1)), np.minimum(a.min(-1), b.min(-1))
    at_bound = (top >= bounds[1] - near) | (bottom <= bounds[0] + near)
    return np.asarray(split.two & (split.mixed | split.exact | at_bound))


def _at(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, place[..., None], -1)[..., 0]


def ends(h: Humps, mid: np.ndarray, n: int, m: int, level: float, clear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the rates' difference on the scale of the outcomes; which side of 0 they are on is for a test to say."""
    p, q = h.high_a / n, h.high_b / m
    low_rate, high_rate = rate_ends(n, m, level)
    low = mid - h.gap * (q - p - low_rate[h.high_a, h.high_b])
    high = mid + h.gap * (high_rate[h.high_a, h.high_b] - (q - p))
    up, down = clear & (q > p), clear & (q < p)
    hair = HAIR * h.gap
    return (np.where(up, np.maximum(low, hair), np.minimum(low, 0.0)),
            np.where(down, np.minimum(high, -hair), np.maximum(high, 0.0)))  # fmt: skip


def rate_ends(n: int, m: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of rate_b - rate_a for each pair of counts, [0..n, 0..m]: exact; Newcombe's (1998) where seeds are many."""
    if n + m <= MOST_EXACT:
        return -_exact_high(m, n, (1 - level) / 2).T, _exact_high(n, m, (1 - level) / 2)
    z = normal_quantile(0.5 + level / 2)
    p, q = np.arange(n + 1)[:, None] / n, np.arange(m + 1)[None, :] / m
    (low_p, high_p), (low_q, high_q) = score_ends(p, np.asarray(n), z), score_ends(q, np.asarray(m), z)
    return q - p - np.hypot(q - low_q, high_p - p), q - p + np.hypot(high_q - q, p - low_p)


def _exact_high(n: int, m: int, alpha: float) -> np.ndarray:
    """The largest difference at which each pair of counts still has a chance above alpha, and a step more."""
    likely = _chances(n, m) > alpha
    last = likely.shape[0] - likely[::-1].argmax(0)  # steps from -1 to the first that is too unlikely for good
    return np.asarray(np.where(likely.any(0), np.minimum(-1 + STEP * (last + 1), 1.0), -1.0).reshape(n + 1, m + 1))


@lru_cache(maxsize=64)
def _chances(n: int, m: int) -> np.ndarray:
    """[differences of the rates, pairs of counts]: the chance of a score as low, at the common rate that makes it most
    likely; for all levels, because a p value asks for many."""
    x, y = (each.ravel() for each in np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij"))
    ways = (_log_choose(n)[:, None] + _log_choose(m)[None, :]).ravel()
    rows = []
    for d in -1 + STEP * np.arange(1, round(2 / STEP)):
        p = np.linspace(max(0.0, -d), min(1.0, 1 - d), COMMON + 2)[1:-1, None]
        fit = x * np.log(p) + (n - x) * np.log1p(-p) + y * np.log(p + d) + (m - y) * np.log1p(-p - d)
        best = p[fit.argmax(0), 0]  # the rate of the first arm that these counts make most likely
        z = (y / m - x / n - d) / np.sqrt(best * (1 - best) / n + (best + d) * (1 - best - d) / m)
        rows.append(_as_low(np.round(z, 6), np.exp(fit + ways)))
    return np.array(rows)


def _as_low(z: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The largest chance, over the rows of mass, of a score no higher than each."""
    by = np.argsort(z, kind="stable")
    last = np.searchsorted(z[by], z, side="right") - 1
    return np.asarray(np.cumsum(mass[:, by], 1)[:, last].max(0))


@lru_cache(maxsize=256)
def counts_tell_enough(n: int, m: int, alpha: float) -> bool:
    """Whether counts alone tell about as much as deals of the outcomes themselves, averaged over all pairs of rates.

    Few tables are possible, and at some numbers of seeds none has a p just below alpha. Deals that differ within a hump
    as well are many, and use all of alpha, as Fisher's test would if a coin decided on the last table. But who looks
    several times tosses the coin several times, and errs a little more often than declared: hence only where it is
    worth it.
    """
    exact, coin = barnard(n, m) <= alpha + 1e-12, fisher_with_a_coin(n, m, alpha)
    rates = np.arange(0.05, 1.0, 0.1)
    a, b = _binomial(n, rates), _binomial(m, rates)
    by_counts, by_deals = (np.triu(a.T @ calls @ b, 1).sum() for calls in (exact, coin))  # of each pair of rates
    return bool(by_counts >= ENOUGH * by_deals)


def power(n: int, rates: tuple[float, float], alpha: float) -> float:
    """The chance that n seeds a variant tell these two rates apart, the second being higher."""
    exact = barnard(n, n) <= alpha + 1e-12
    calls = exact if counts_tell_enough(n, n, alpha) else fisher_with_a_coin(n, n, alpha)
    more = np.arange(n + 1)[None, :] > np.arange(n + 1)[:, None]
    a, b = (_binomial(n, np.array([rate]))[:, 0] for rate in rates)
    return float(a @ (calls * more) @ b)


def seeds_for_rates(rates: tuple[float, float], alpha: float, least: int, enough: float = 0.8) -> int | None:
    """The smallest number of seeds a variant that tells these rates apart with this power; None beyond MOST."""
    low, high = least, MOST
    if power(high, rates, alpha) < enough:
        return None
    while low < high:  # power rises with n but for the teeth of a count, which the last step allows for
        middle = (low + high) // 2
        low, high = (middle + 1, high) if power(middle, rates, alpha) < enough else (low, middle)
    return low


def fisher_with_a_coin(n: int, m: int, alpha: float) -> np.ndarray:
    """The chance that Fisher's test, alpha / 2 a side, calls each pair of counts different; a coin for the last."""
    log_n, log_m, log_all = _log_choose(n), _log_choose(m), _log_choose(n + m)
    calls = np.zeros((n + 1, m + 1))
    for total in range(n + m + 1):
        x = np.arange(max(0, total - m), min(n, total) + 1)  # of the first arm: b is best where it is smallest
        mass = np.exp(log_n[x] + log_m[total - x] - log_all[total])
        for side in (slice(None), slice(None, None, -1)):
            before = np.cumsum(mass[side]) - mass[side]
            calls[x[side], total - x[side]] += np.clip((alpha / 2 - before) / mass[side], 0.0, 1.0)
    return np.minimum(calls, 1.0)


def _binomial(n: int, rates: np.ndarray) -> np.ndarray:
    """[0..n, rates]"""
    k = np.arange(n + 1)[:, None]
    return np.exp(_log_choose(n)[:, None] + k * np.log(rates) + (n - k) * np.log1p(-rates))


@lru_cache(maxsize=64)
def barnard(n: int, m: int) -> np.ndarray:
    """Two-sided p of each pair of counts, [0..n, 0..m]: the largest chance of a pooled z as large, over all rates."""
    z = np.round(pooled_z(n, m), 9).ravel()
    by = np.argsort(-z, kind="stable")
    last = np.searchsorted(-z[by], -z, side="right") - 1  # tables of the same z come together
    log_n, log_m = _log_choose(n), _log_choose(m)
    total = np.arange(n + 1)[:, None] + np.arange(m + 1)[None, :]
    worst = np.zeros(z.size)
    for rate in RATES:
        mass = np.exp(log_n[:, None] + log_m[None, :] + total * math.log(rate) + (n + m - total) * math.log1p(-rate))
        worst = np.maximum(worst, np.cumsum(mass.ravel()[by])[last])
    return np.minimum(worst, 1.0).reshape(n + 1, m + 1)


def pooled_z(n: int, m: int) -> np.ndarray:
    """|p_b - p_a| over its standard error at the common rate; 0 where all solved or all failed."""
    x, y = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    rate = (x + y) / (n + m)
    spread = np.sqrt(rate * (1 - rate) * (1 / n + 1 / m))
    return np.asarray(np.where(spread > 0, np.abs(y / m - x / n) / np.where(spread > 0, spread, 1.0), 0.0))


def _log_choose(n: int) -> np.ndarray:
    return np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)])
