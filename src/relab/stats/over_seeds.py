"""How sure is a mean over seeds? The one interval for it: compare, report, notes, sweeps and studies all ask here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from relab.stats import means

LEAST = 5  # seeds: below, no interval has been shown to hold; dots and their range say what is known
ANY = (-math.inf, math.inf)


class SeedMean(NamedTuple):
    """A mean over seeds. low and high are NaN under LEAST seeds; `least` to `most` is what the seeds came to."""

    mid: float
    low: float
    high: float
    n: int  # seeds with a number
    level: float
    least: float
    most: float
    gone: int  # seeds without a number: they diverged, or have none; not part of the mean

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low)


def mean_over_seeds(values: Iterable[float], bounds: tuple[float, float] = ANY, level: float = 0.95) -> SeedMean:
    """Student's t widened by Hall's skewness correction, cut at what is possible; numbers that are not finite count as
    gone.

    `bounds` are the lowest and highest value there can be. An end is never moved past what was measured.
    >>> mean_over_seeds([1.0, 2.0, 3.0, 4.0, 5.0], bounds=(1.5, 4.5))[:4]
    (3.0, 1.5, 4.5, 5)
    """
    every = np.asarray(list(values), np.float64)
    x = every[np.isfinite(every)]
    n, gone = len(x), len(every) - len(x)
    if not n:
        return SeedMean(math.nan, math.nan, math.nan, 0, level, math.nan, math.nan, gone)
    mid, least, most = float(x.mean()), float(x.min()), float(x.max())
    if n < LEAST:
        return SeedMean(mid, math.nan, math.nan, n, level, least, most, gone)
    low, high = means.widened(means.one_sample(x), level)
    return SeedMean(mid, *cut((float(low), float(high)), mid, bounds), n, level, least, most, gone)


def cut(ends: tuple[float, float], mid: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, cut at what is possible; a bound that the mean itself passes is none."""
    return max(ends[0], min(bounds[0], mid)), min(ends[1], max(bounds[1], mid))
