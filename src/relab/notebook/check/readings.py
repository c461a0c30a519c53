"""Which values could an honest reader take from a curve? Its end, peak, low, start or a step, smoothed or not.

People read numbers off plots: smoothed, one row to the side, as the mean of the last rows. For each way to quote a
number there is a span that holds all such readings; what lies outside of it was not read off this curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from relab.health.curve import Curve
from relab.notebook.check.wording import Number

WIDTHS = (2, 3, 5, 10, 20, 50, 100)  # rows over which people average


class Span(NamedTuple):
    """All honest readings lie from low to high."""

    low: float
    high: float

    def over(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))


def span(values: Iterable[float]) -> Span:
    every = np.asarray(list(values), float)
    return Span(float(every.min()), float(every.max()))


def widths(rows: int, share: float) -> list[int]:
    """Widths of means that cover no more than a share of the rows (two or three rows always)."""
    return [k for k in {*WIDTHS, int(rows * share)} if 1 < k <= max(3, int(rows * share)) and k < rows]


def rolling(values: np.ndarray, width: int) -> np.ndarray:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[width:] - sums[:-width]) / width


def last(curve: Curve) -> Span:
    v = curve.values
    rows = v[-max(1, len(v) // 33) :]
    return span([*rows, v[-1], *(v[-k:].mean() for k in widths(len(v), 0.2))])


def first(curve: Curve) -> Span:
    v = curve.values
    rows = v[: max(2, len(v) // 33)]
    return span([*rows, *(v[:k].mean() for k in widths(len(v), 0.1))])


def peak(curve: Curve) -> Span:
    v = curve.values
    return span([v.max(), *(rolling(v, k).max() for k in widths(len(v), 0.1))])


def low(curve: Curve) -> Span:
    v = curve.values
    return span([v.min(), *(rolling(v, k).min() for k in widths(len(v), 0.1))])


def mean(curve: Curve) -> Span:
    """On average: means and medians over all of the run or half of it, and where most of the rows lie."""
    v, half = curve.values, max(1, len(curve) // 2)
    parts = [v, v[-half:], v[:half], v[-max(1, len(v) // 5) :]]
    return span([*(p.mean() for p in parts), *(float(np.median(p)) for p in parts), *np.percentile(v, [10, 90])])


def around(curve: Curve, row: int, reach: int = 1) -> Span:
    """At a row: it and its neighbours, and means around it and up to it."""
    v = curve.values
    near = v[max(0, row - reach) : row + reach + 1]
    if not reach:
        return span(near)
    smooth = [v[max(0, row - k // 2) : row + k // 2 + 1].mean() for k in widths(len(v), 0.05)]
    trailing = [v[max(0, row + 1 - k) : row + 1].mean() for k in widths(len(v), 0.05)]
    return span([*near, *smooth, *trailing])


ROLES = {"last": last, "first": first, "peak": peak, "low": low, "mean": mean}


def beyond(quoted: Number, readings: Span, size: float) -> bool:
    """Whether a number lies outside by more than rounding, a slip of the last digits, or two percent explain."""
    scale = 100 if quoted.percent and max(abs(readings.low), abs(readings.high)) <= 1.5 else 1
    bounds = (readings.low * scale, readings.high * scale)
    gap = max(bounds[0] - quoted.value, quoted.value - bounds[1])
    near = bounds[0] if quoted.value < bounds[0] else bounds[1]
    share = 0.15 if quoted.hedged else 0.02
    return gap > max(3 * quoted.unit, share * max(abs(near), abs(quoted.value)), share * size * scale)
