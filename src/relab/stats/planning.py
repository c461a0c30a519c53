"""How many seeds, how many comparisons? What must be settled before the numbers are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.stats import humps
from relab.stats.rates import wilson
from relab.stats.student import chi2_quantile, normal_quantile, t_quantile

MOST_SEEDS = 100_000
SLICES = 100  # of the distribution of an estimated error
EDGE = 0.02  # rates are not taken as closer to 0 or 1 than this


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p of several declared comparisons: below alpha means significant together with the others."""
    order = np.argsort(np.asarray(p, np.float64), kind="stable")
    adjusted, so_far = [0.0] * len(order), 0.0
    for rank, i in enumerate(order):
        so_far = max(so_far, min(1.0, (len(order) - rank) * float(p[i])))
        adjusted[int(i)] = so_far
    return adjusted


def overstatement(truth: float, error: float, df: float, level: float, least: float = 0.0) -> float:
    """E[estimate | it was told] / truth for a normal estimate of a true difference: how much a result that had to be
    clear to be told overstates (Gelman and Carlin 2014, type M).

    It is told where it is beyond t standard errors, which are estimated anew each time, and at least `least`.

    >>> round(overstatement(1.0, 1.0, 1e6, 0.95), 2), round(overstatement(1.0, 1.0, 8, 0.95), 2)
    (2.49, 2.4)
    """
    shares = (np.arange(SLICES) + 0.5) / SLICES
    seen = [error * math.sqrt(chi2_quantile(float(share), df) / df) for share in shares]
    bars = [max(t_quantile((1 + level) / 2, df) * each, least) for each in seen]
    z = [(bar - truth) / error for bar in bars]
    density = sum(math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in z)
    beyond = sum(math.erfc(x / math.sqrt(2)) / 2 for x in z)
    return max(1.0, (truth + error * density / beyond) / truth) if beyond > 1e-12 else max(1.0, min(bars) / truth)


# ---- Seeds


def seeds_for(effect: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Seeds a variant so that a true `effect` is told from none with `power`, both variants having spread `sd`."""
    if effect <= 0 or not math.isfinite(sd):
        raise ValueError(f"seeds_for needs an effect > 0 and a finite sd, but got {effect} and {sd}")
    z = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    n = max(2, math.ceil(min(2 * (z * sd / effect) ** 2, MOST_SEEDS)))  # Student's quantiles ask for a few more
    while n < 1000 and not _enough(effect, sd * math.sqrt(2 / n), 2 * n - 2, alpha, power):
        n += 1
    return n


def _enough(effect: float, error: float, df: int, alpha: float, power: float) -> bool:
    return effect >= error * (t_quantile(1 - alpha / 2, df) + t_quantile(power, df))


def pairs_for(effect: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Pairs so that a true `effect` is told from none with `power`, the differences within seeds having spread `sd`."""
    z = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    n = max(2, math.ceil(min((z * sd / effect) ** 2, MOST_SEEDS)))
    while n < 1000 and not _enough(effect, sd / math.sqrt(n), n - 1, alpha, power):
        n += 1
    return n


def pairs_range(
    effect: float, d: np.ndarray, alpha: float = 0.05, power: float = 0.8, least: int = 5
) -> tuple[int, int] | None:
    """pairs_for at both ends of the 80 % interval of the spread of these differences; None beyond floats."""
    total = _squares(d)
    if not math.isfinite(total):
        return None
    sds = [math.sqrt(total / chi2_quantile(p, len(d) - 1)) for p in (0.9, 0.1)]
    low, high = (max(least, pairs_for(effect, sd, alpha, power)) for sd in sds)
    return low, high


def seeds_range(
    effect: float, a: np.ndarray, b: np.ndarray, alpha: float = 0.05, power: float = 0.8, least: int = 5
) -> tuple[int, int] | None:
    """seeds_for at both ends of the 80 % interval of the pooled standard deviation: few seeds know it badly.

    Outcomes in two humps are counts, and need more seeds than numbers of their spread: there by the exact test's power,
    at both ends of the 80 % interval of the common rate. None where the squares of the outcomes are beyond floats.
    """
    if not math.isfinite(total := _squares(a) + _squares(b)):
        return None
    if (counts := _seeds_of_counts(effect, a, b, alpha, power, least)) is not None:
        return counts
    df = len(a) + len(b) - 2
    sds = [math.sqrt(total / chi2_quantile(p, df)) for p in (0.9, 0.1)]
    low, high = (max(least, seeds_for(effect, sd, alpha, power)) for sd in sds)
    return low, high


def _squares(values: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.var(values) * len(values))


def _seeds_of_counts(
    effect: float, a: np.ndarray, b: np.ndarray, alpha: float, power: float, least: int
) -> tuple[int, int] | None:
    """None where outcomes are not in two humps, or so many seeds are needed that the usual formula is right."""
    split = humps.humps(np.asarray(a)[None], np.asarray(b)[None])
    share = effect / float(split.gap[0]) if split.two[0] else 2.0
    if share > 0.95:  # not in two humps, or the effect is the whole way between them
        return None
    solved, total = float(split.high_a[0] + split.high_b[0]), len(a) + len(b)
    common = [solved / total, *wilson(solved, total, 0.8)[1:3]]
    middles = [min(max(rate, share / 2 + EDGE), 1 - share / 2 - EDGE) for rate in common]
    needed = [humps.seeds_for_rates((r - share / 2, r + share / 2), alpha, least, power) for r in middles]
    known = [n for n in needed if n is not None]
    return (min(known), max(known)) if len(known) == len(needed) else None
