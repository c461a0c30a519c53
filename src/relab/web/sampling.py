"""Which rows of a long curve does a screen need? All where they fit, else the lowest and highest of each column.

What is kept are rows of the log, never means of them: no spike is lost, and zooming in ends at the rows themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """Some rows of a curve."""

    x: np.ndarray
    y: np.ndarray
    rows: int  # there are in the stretch
    exact: bool  # every one of them is here
    lost: int  # that are not finite


def window(x: np.ndarray, start: float | None, end: float | None) -> slice:
    """The rows of a rising axis in a stretch, and one on either side, so that lines run out of the picture."""
    first = 0 if start is None else max(int(np.searchsorted(x, start, side="left")) - 1, 0)
    last = len(x) if end is None else min(int(np.searchsorted(x, end, side="right")) + 1, len(x))
    return slice(first, max(last, first))


def sample(
    x: np.ndarray, y: np.ndarray, columns: int, start: float | None = None, end: float | None = None, log: bool = False
) -> Sample:
    """At most about twice as many rows as the picture has columns; x must rise. `log`: the columns are those of a
    logarithmic axis, which has no place for what is not above 0."""
    part = window(x, start, end)
    x, y = x[part], y[part]
    if log:
        x, y = x[x > 0], y[x > 0]
    lost = int(np.count_nonzero(~np.isfinite(y)))
    if len(x) <= 2 * columns:
        return Sample(x, y, len(x), True, lost)
    keep = extremes(np.log(x) if log else x, y, columns)
    return Sample(x[keep], y[keep], len(x), False, lost)


def extremes(x: np.ndarray, y: np.ndarray, columns: int) -> np.ndarray:
    """Numbers of the rows that are lowest and highest in each of some equally wide columns, in their order; the first
    and the last row always, and one row of each column that holds no finite number."""
    width = (float(x[-1]) - float(x[0])) / columns or 1.0
    cell = np.minimum(((x - x[0]) / width).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    good = np.isfinite(y)
    low, high = np.where(good, y, np.inf), np.where(good, y, -np.inf)
    places = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(x)]))
    lowest = _first(low == np.minimum.reduceat(low, starts)[places], starts)
    highest = _first(high == np.maximum.reduceat(high, starts)[places], starts)
    gaps = _first(~good, starts) if not good.all() else starts[:0]
    return np.unique(np.concatenate([lowest, highest, gaps, [0, len(x) - 1]]))


def _first(hits: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The first row of each column for which it holds; columns without one are left out."""
    rows = np.flatnonzero(hits)
    at = np.searchsorted(rows, starts)
    ends = np.r_[starts[1:], len(hits)]
    known = at < len(rows)
    first = rows[at[known]]
    return first[first < ends[known]]


def smoothed(y: np.ndarray, rows: float) -> np.ndarray:
    """A running mean that forgets: each row counts for less by exp(-1 / rows) at the next, and the start is not pulled
    towards zero. Rows that are not finite stay as they are and are passed over.

    >>> smoothed(np.array([1.0, 1.0, 4.0]), 1e-9).tolist()
    [1.0, 1.0, 4.0]
    """
    keep = float(np.exp(-1.0 / max(rows, 1e-3)))
    result, mean, weight = y.astype(np.float64).copy(), 0.0, 0.0
    for i, value in enumerate(y.tolist()):
        if value - value == 0.0:
            mean, weight = keep * mean + (1 - keep) * value, keep * weight + (1 - keep)
            result[i] = mean / weight
    return result
