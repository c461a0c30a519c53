"""Which of two means is larger, and by how much? The interval behind every answer; rows of many samples are fine.

Three parts, each for what the others get wrong (docs/statistics.md has the numbers):
- outcomes in two humps (solved or failed) are counts, and Barnard's exact test says whether the rates differ;
- else a permutation test says whether 0 is left out: its error is exact where arms are alike, whatever their shape;
- how far the interval reaches is Welch's t widened by Hall's correction, which covers where arms are unlike.
Where arms have unequal numbers of seeds, or one varies twice as much as the other and they do not share an edge,
Welch's t must leave out 0 as well, and from five times on the widened interval: there the deals say little, and a tail
that few seeds have shown decides.
"""

from __future__ import annotations

import math

import numpy as np

from relab.stats import humps, means, permutation
from relab.stats.means import Ends, clean
from relab.stats.student import Interval

Bounds = tuple[float, float]
UNEVEN, UNLIKE = 2.0, 5.0  # standard deviation of one arm over that of the other
CLOSE = 0.05  # of the difference: how far an end is put from 0 at most where the deals alone leave 0 out
EDGE = 0.05  # of the range of all outcomes: this close to its end is at it
FULL = 0.01  # of the way between the bounds: this close to the highest value is at it


def difference(a: np.ndarray, b: np.ndarray, level: float = 0.95, bounds: Bounds = humps.ANY) -> Interval:
    """mean(b) - mean(a) for independent seeds; `bounds` are the lowest and highest outcome there can be."""
    a, b = clean(a, "a"), clean(b, "b")
    low, high = ends(a[None], b[None], level, bounds=bounds)
    return Interval(float(b.mean() - a.mean()), float(low[0]), float(high[0]), min(len(a), len(b)), level)


def ends(a: np.ndarray, b: np.ndarray, level: float, most: int = permutation.DEALS, bounds: Bounds = humps.ANY) -> Ends:
    """(low, high) of mean(b) - mean(a) for each row."""
    n, m = a.shape[-1], b.shape[-1]
    if max(n, m) > humps.MOST:
        return by_deals(a, b, level, most, np.zeros(len(a), bool), bounds)
    split = humps.humps(a, b)
    counts = humps.counted(a, b, split, bounds)
    low, high = by_deals(a, b, level, most, counts, bounds)
    two_low, two_high = by_counts(split, (low, high), means.two_samples(a, b).mid, (n, m), level)
    return np.where(counts, two_low, low), np.where(counts, two_high, high)


def by_counts(split: humps.Humps, dealt: Ends, mid: np.ndarray, n: tuple[int, int], level: float) -> Ends:
    """The interval of two rates; Barnard's test says on which side of 0 it is, or deals where those tell more.

    Where each arm has a hump of its own either may: few counts have a p below what many comparisons leave.
    """
    low, high = dealt
    apart = np.abs(split.high_b / n[1] - split.high_a / n[0]) == 1
    decided = (low > 0) | (high < 0)
    exact = humps.barnard(*n)[split.high_a, split.high_b] <= 1 - level + 1e-12
    by_exact = split.exact | humps.counts_tell_enough(*n, round(1 - level, 12))
    clear = np.where(by_exact, exact, decided) | (apart & decided)
    two_low, two_high = humps.ends(split, mid, *n, level, clear)
    return (np.where(apart & (low <= 0), np.minimum(two_low, low), two_low),
            np.where(apart & (high >= 0), np.maximum(two_high, high), two_high))  # fmt: skip


def by_deals(a: np.ndarray, b: np.ndarray, level: float, most: int, alike: np.ndarray, bounds: Bounds) -> Ends:
    """The widened interval, its sides of 0 decided by the permutation test; `alike` arms need no second test."""
    estimate = means.careful(a, b)
    wide_low, wide_high = means.widened(estimate, level)
    finest = permutation.finest(a.shape[-1], b.shape[-1])
    if 1 - level < finest:  # no deal is that rare
        return wide_low, wide_high
    fine_low, fine_high = means.widened(estimate, 1 - finest)
    plain = means.two_samples(a, b)
    se = np.sqrt(plain.var)
    lowest, highest = permutation.critical(a, b, 1 - level, most)
    low, high = _minus(plain.mid, highest, se), _minus(plain.mid, lowest, se)
    welch_low, welch_high = means.plain(plain, level)
    # Deals of unequal numbers err where the smaller arm is the wider one, and five seeds do not show that it is.
    uneven = unlike(a, b, UNEVEN, bounds) | (a.shape[-1] != b.shape[-1])
    far_apart, apart = unlike(a, b, UNLIKE, bounds) & ~alike, uneven & ~alike
    most_low = np.where(far_apart, wide_low, np.where(apart, welch_low, low))
    most_high = np.where(far_apart, wide_high, np.where(apart, welch_high, high))
    up = ((low > 0) & (most_low > 0)) | (fine_low > 0)
    down = ((high < 0) & (most_high < 0)) | (fine_high < 0)
    close = CLOSE * np.abs(estimate.mid)
    return (
        np.where(up, _nearest(low, wide_low, close), np.minimum(wide_low, 0.0)),
        np.where(down, -_nearest(-high, -wide_high, close), np.maximum(wide_high, 0.0)),
    )


def full(bounds: Bounds) -> float:
    """From where on a mean is at the highest value there can be."""
    low, high = bounds
    return high - FULL * (high - low if math.isfinite(low) else abs(high)) if math.isfinite(high) else math.inf


def decided(reach: Ends, test: Ends, mid: np.ndarray) -> Ends:
    """An interval whose side of 0 another says; where only that one leaves out 0, its own end is taken."""
    (low, high), (test_low, test_high) = reach, test
    low = np.where((test_low > 0) & (mid > 0), np.where(low > 0, low, test_low), np.minimum(low, 0.0))
    high = np.where((test_high < 0) & (mid < 0), np.where(high < 0, high, test_high), np.maximum(high, 0.0))
    return np.minimum(low, mid), np.maximum(high, mid)


def _minus(mid: np.ndarray, t: np.ndarray, se: np.ndarray) -> np.ndarray:
    """mid - t se, where t may be infinite and se 0."""
    return mid - np.where(se > 0, t * np.where(se > 0, se, 1.0), np.where(np.isinf(t), t, 0.0))


def _nearest(deals: np.ndarray, wide: np.ndarray, close: np.ndarray) -> np.ndarray:
    """The smaller of two ends above 0; close to it where only the deals leave it out, which say no more than that."""
    return np.where(deals <= 0, wide, np.where(wide <= 0, np.minimum(deals, close), np.minimum(deals, wide)))


def unlike(a: np.ndarray, b: np.ndarray, times: float, bounds: Bounds = humps.ANY) -> np.ndarray:
    """Whether one arm varies so many times as much as the other, and the tight one is not where the other ends.

    A ceiling that both reach is such an end, and a bound of what is possible is one for whoever sits at it: who is
    always there cannot be worse than who sometimes is.
    """
    sd_a, sd_b = a.std(-1), b.std(-1)
    top, bottom = (np.maximum(a.max(-1), b.max(-1)), np.minimum(a.min(-1), b.min(-1)))
    near, tight = EDGE * (top - bottom), _tight(a, b)
    shared = ((a.max(-1) >= top - near) & (b.max(-1) >= top - near) & (tight >= top - near)) | (
        (a.min(-1) <= bottom + near) & (b.min(-1) <= bottom + near) & (tight <= bottom + near)
    )
    at_bound = (tight >= bounds[1] - near) | (tight <= bounds[0] + near)
    return (np.maximum(sd_a, sd_b) > times * np.minimum(sd_a, sd_b)) & ~shared & ~at_bound


def _tight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Median of the arm that varies less."""
    return np.where(a.std(-1) < b.std(-1), np.median(a, -1), np.median(b, -1))
