"""Which of two variants is better within seeds, and by how much? Differences of pairs; rows of many samples are fine.

Where both variants are alike, every difference may as well have the other sign, whatever the shape of the outcomes: a
test that flips signs is exact there. Under eight or nine pairs there are too few ways to flip, and Student's t decides,
which errs no more for differences that are symmetric; and so they nearly are where both vary alike. Student's t says
how far the interval reaches there; where one variant varies twice as much as the other it is t widened by Hall's
correction, which from five times on decides too.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

from relab.stats import compare_means, means
from relab.stats.means import Ends, clean
from relab.stats.student import Interval

BEYOND = 6  # ways to set the signs that may lie beyond on each side: with fewer the test has no p near alpha
FLIPS = 4096  # all of them up to here (12 pairs), beyond as many drawn ones
TIE = 1e-9  # sums that differ by rounding alone are one


def paired_difference(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Interval:
    """mean(b - a) where a[i] and b[i] share their seed; worth it if they correlate by more than about 0.3."""
    if len(a) != len(b):
        raise ValueError(f"pairs need as many a as b, but got {len(a)} and {len(b)}: leave out seeds without a partner")
    a, b = clean(a, "a"), clean(b, "b")
    low, high = ends(a[None], b[None], level)
    return Interval(float((b - a).mean()), float(low[0]), float(high[0]), len(a), level)


def ends(a: np.ndarray, b: np.ndarray, level: float) -> Ends:
    """(low, high) of mean(b - a) for each row."""
    estimate = means.one_sample(b - a)
    (low, high), (wide_low, wide_high) = means.plain(estimate, level), means.widened(estimate, level)
    uneven = spread_apart(a, b, compare_means.UNEVEN)
    low, high = np.where(uneven, wide_low, low), np.where(uneven, wide_high, high)
    clear = differs(b - a, 1 - level) & ~(spread_apart(a, b, compare_means.UNLIKE) & (low <= 0) & (high >= 0))
    close = compare_means.CLOSE * np.abs(estimate.mid)
    up, down = clear & (estimate.mid > 0), clear & (estimate.mid < 0)
    return (np.where(up, np.where(low > 0, low, close), np.minimum(low, 0.0)),
            np.where(down, np.where(high < 0, high, -close), np.maximum(high, 0.0)))  # fmt: skip


def spread_apart(a: np.ndarray, b: np.ndarray, times: float) -> np.ndarray:
    """Whether one variant varies so many times as much as the other."""
    sd_a, sd_b = a.std(-1), b.std(-1)
    return np.asarray(np.maximum(sd_a, sd_b) > times * np.minimum(sd_a, sd_b))


def differs(d: np.ndarray, alpha: float) -> np.ndarray:
    """Whether the mean of these differences is told from 0."""
    if alpha / 2 * 2.0 ** d.shape[-1] >= BEYOND:
        return flipped(d) <= alpha + 1e-12
    low, high = means.plain(means.one_sample(d), 1 - alpha)
    return np.asarray((low > 0) | (high < 0))


def flipped(d: np.ndarray) -> np.ndarray:
    """Two-sided p: the share of all ways to set the signs in which the mean is as far from 0."""
    sums = np.abs(d @ signs(d.shape[-1]).T)
    return np.asarray((sums >= sums[..., :1] * (1 - TIE)).mean(-1))


@lru_cache(maxsize=16)
def signs(n: int) -> np.ndarray:
    """[flips, n]; the first row is the signs as they were."""
    if 2**n <= FLIPS:
        return np.array(list(product((1.0, -1.0), repeat=n)))
    drawn = np.random.default_rng(n).choice((-1.0, 1.0), (FLIPS - 1, n))
    return np.concatenate([np.ones((1, n)), drawn])
