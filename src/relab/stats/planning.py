"""How many seeds, how many looks, how many comparisons? What must be settled before the numbers are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.stats.student import chi2_quantile, normal_quantile, t_quantile

MOST_SEEDS = 100_000


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p of several declared comparisons: below alpha means significant together with the others."""
    order = np.argsort(np.asarray(p, np.float64), kind="stable")
    adjusted, so_far = [0.0] * len(order), 0.0
    for rank, i in enumerate(order):
        so_far = max(so_far, min(1.0, (len(order) - rank) * float(p[i])))
        adjusted[int(i)] = so_far
    return adjusted


# ---- Looking again


def look_alpha(look: int, looks: int | None = None, alpha: float = 0.05) -> float:
    """The error that look number `look` may spend: alpha / 2, / 4, / 8 ...; the last declared one takes what is left.

    The shares add up to alpha, so the chance that any look errs is at most alpha: whatever the sizes, however the
    looks depend on each other, and whether one stops at a result or not. `looks` = 1 is the plain interval.
    """
    if look < 1 or (looks is not None and look > looks):
        raise ValueError(f"a look needs 1 <= look <= looks, but got look {look} of {looks}: declare more beforehand")
    return alpha / 2 ** (look - 1 if look == looks else look)


def look_number(before: Sequence[Sequence[int]], now: Sequence[int]) -> int:
    """Which look this is, by the numbers of seeds looked at before; the same numbers again are the same look."""
    sizes = list(dict.fromkeys([*(tuple(each) for each in before), tuple(now)]))
    return sizes.index(tuple(now)) + 1


# ---- Seeds


def seeds_for(effect: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Seeds a variant so that a true `effect` is told from none with `power`, both variants having spread `sd`."""
    if effect <= 0 or not math.isfinite(sd):
        raise ValueError(f"seeds_for needs an effect > 0 and a finite sd, but got {effect} and {sd}")
    z = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    n = max(2, math.ceil(min(2 * (z * sd / effect) ** 2, MOST_SEEDS)))  # Student's quantiles ask for a few more
    while n < 1000 and not _enough(n, effect, sd, alpha, power):
        n += 1
    return n


def _enough(n: int, effect: float, sd: float, alpha: float, power: float) -> bool:
    df = 2 * n - 2
    return effect >= sd * math.sqrt(2 / n) * (t_quantile(1 - alpha / 2, df) + t_quantile(power, df))


def seeds_range(
    effect: float, a: np.ndarray, b: np.ndarray, alpha: float = 0.05, power: float = 0.8, least: int = 5
) -> tuple[int, int]:
    """seeds_for at both ends of the 80 % interval of the pooled standard deviation: few seeds know it badly."""
    df = len(a) + len(b) - 2
    total = float(np.var(a) * len(a) + np.var(b) * len(b))
    sds = [math.sqrt(total / chi2_quantile(p, df)) for p in (0.9, 0.1)]
    low, high = (max(least, seeds_for(effect, sd, alpha, power)) for sd in sds)
    return low, high
