"""Did a run keep what it had reached? A fall that stays, or swings; both held against the run's own ups and downs.

A fall is told by the end of a course, never by one point: its last two points have lost half of what three in a row had
gained, clear of their errors (or it fell from point to point, from its best to its end), and the low stretch is longer
than the high one before it, or lies below it by more than these two vary. Points of a run that swings vary as much
before the fall as it is deep, so that what looks like a fall may be its next swing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from relab.record.evaluations import Estimate
from relab.runs.apart import Z, clearly, level

HALF = 0.5  # of the gain
FEWEST = 4  # points of a course that can show a fall
RECENT = 3  # points at least, or a third of them, in which a dip is a recent one


@dataclass(frozen=True)
class Fall:
    """Where the low stretch begins, and how much of the gain is lost at least."""

    start: int  # index of its first point
    share: float
    half: float  # of the gain: the level that it lies below
    step: int = 0  # at which the return fell


def fall_of(points: Sequence[Estimate], nothing: Estimate, rose: bool) -> Fall | None:
    """The fall that a course ends with; `nothing` is what no learning earns. A course that began at its best has not
    risen, unless `rose` says that it began after learning had."""
    means = [p.mean for p in points]
    if len(means) < FEWEST:
        return None
    smooth = in_a_row(means)
    top = max(range(len(smooth)), key=lambda i: smooth[i])
    gain = smooth[top] - nothing.mean
    half, way = nothing.mean + HALF * gain, _straight(points)
    end = means[-1:] if way > 2 else means[-2:]
    if gain <= 0 or max(end) > half or (top == 0 and means[0] >= smooth[0] and not rose):
        return None
    start = next(i for i in range(top, len(means)) if all(mean <= half for mean in means[i:]))
    began = next(i for i in range(start) if means[i] > half)
    stop = min(start, len(means) - way + 1) if way else start  # on the way down it is no longer high
    if not _apart(points, top, half, start, nothing):
        return None
    fell = Fall(start, (smooth[top] - max(end)) / gain, half)
    return fell if way > 3 or _stays(means[began:stop], means[start:]) else None


def _apart(points: Sequence[Estimate], top: int, half: float, start: int, nothing: Estimate) -> bool:
    """Whether what was reached is clear of no learning, and of the low stretch: by the points around the top alone, or,
    where a few episodes each tell little, by all that were high. Both stretches were picked, from all of the course."""
    highs = [i for i in range(start) if points[i].mean > half]
    peaks = [i for i in highs if abs(i - top) <= 1]
    grounds = [nothing, level(points, range(start, len(points)))]
    reached = [level(points, places) for places in (peaks, highs) if places]
    return any(all(_above(high, low, len(points)) for low in grounds) for high in reached)


def _straight(points: Sequence[Estimate]) -> int:
    """How many points there are from the best one to the end, if none of them lies above the one before; else 0."""
    top = max(reversed(range(len(points))), key=lambda i: points[i].mean)
    way = points[top:]
    return len(way) if all(a.mean >= b.mean for a, b in pairwise(way)) else 0


def _stays(high: list[float], low: list[float]) -> bool:
    """Whether it was low for longer than it had been high, or the two stretches differ by more than the errors of their
    means. Points of the low one are taken to vary as much as those of the high one, at least: there are few of them.
    """
    if len(low) > len(high):
        return True
    high = _before_the_fall(high)
    before = _spread(high)
    after = max(before, _spread(low[::-1]))  # read backwards: its moves down may be the fall itself
    return float(np.mean(high) - np.mean(low)) > Z * math.hypot(before / len(high) ** 0.5, after / len(low) ** 0.5)


def _before_the_fall(high: list[float]) -> list[float]:
    """A high stretch without the points on the way down at its end: those moves are the fall, and no swing of before.
    At least two are left, which can tell one.

    >>> _before_the_fall([326.0, 253.0, 257.0, 409.0, 205.0]), _before_the_fall([400.0, 300.0])
    ([326.0, 253.0, 257.0, 409.0], [400.0, 300.0])
    """
    end = len(high)
    while end > 1 and high[end - 1] < high[end - 2]:
        end -= 1
    return high[:end] if end > 1 else high


def _spread(stretch: list[float]) -> float:
    """How far points vary, by their moves down alone: those up may be learning. Without a trend both are as large.

    >>> round(_spread([200.0, 400.0, 300.0]), 1), _spread([200.0, 400.0])
    (70.7, 0.0)
    """
    drops = np.minimum(np.diff(stretch), 0.0)
    return math.sqrt(float((drops**2).mean())) if len(drops) else 0.0


def in_a_row(means: list[float]) -> list[float]:
    """The level that three in a row have: their median; at both ends the lower of two, so that one alone is no level.

    >>> in_a_row([9.0, 1.0, 2.0, 3.0])
    [1.0, 2.0, 2.0, 2.0]
    """
    parts = [sorted(means[max(0, i - 1) : i + 2]) for i in range(len(means))]
    return [part[(len(part) - 1) // 2] for part in parts]


def dipped(points: Sequence[Estimate], ground: float) -> bool:
    """Whether a course that ends high was high before, and in between, not long ago, had lost half of that."""
    last, n = points[-1], len(points)
    half = ground + HALF * (last.mean - ground)
    if n < FEWEST or last.mean <= ground:
        return False
    recent = range(n - max(RECENT, n // 3), n - 1)
    return any(_is_dip(points, stretch, half, len(recent)) for stretch in _lows(points, recent, half))


def _lows(points: Sequence[Estimate], recent: range, half: float) -> Iterator[range]:
    """Each stretch of recent points below a level, and each of its points."""
    for low, places in groupby(recent, key=lambda i: points[i].mean < half):
        if low:
            stretch = list(places)
            yield range(stretch[0], stretch[-1] + 1)
            yield from (range(i, i + 1) for i in stretch if len(stretch) > 1)


def _is_dip(points: Sequence[Estimate], stretch: range, half: float, looks: int) -> bool:
    """Whether it lies clearly below what came after it, and below what was reached before."""
    n, low = len(points), level(points, stretch)
    high = [i for i in range(n) if points[i].mean >= half]
    before, after = [i for i in high if i < stretch.start], [i for i in high if i >= stretch.stop]
    if not before:
        return False
    sides = [[n - 1], after], [[max(before, key=lambda i: points[i].mean)], before]
    return all(any(_above(level(points, side), low, looks) for side in either) for either in sides)


def _above(high: Estimate, low: Estimate, looks: int) -> bool:
    return clearly(high.mean - low.mean, high, low, looks)


def crossing(values: np.ndarray, level: float) -> int:
    """The row from which values lie below a level: before it, they are above by the most in sum.

    >>> crossing(np.array([5.0, 5.2, 1.0, 5.9, 1.0, 1.1]), 3.0)
    4
    """
    above = np.cumsum(values - level)
    return int(above.argmax()) + 1 if above.max(initial=0.0) > 0 else 0
