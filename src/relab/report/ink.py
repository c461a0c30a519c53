"""Is a figure more ink than course? Raw returns of training jump from row to row: a mean over stretches shows more.

Evaluations are drawn as they were judged, whatever they do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from relab.report.curves import Band, Bundle, CurveFigure, Line
from relab.stats import mean_over_seeds

STRETCHES = 60  # of the axis, as wide as each other
MOST_HEIGHTS = 20.0  # a line that goes up and down by more than so many heights of the figure covers it
ROWS = 3  # of a stretch at least, or there is nothing to take a mean of
SHADE = (10.0, 90.0)  # percentiles
MEANING = "smoothed: means of sixtieths of the axis; shade: eight of ten rows"


class Course(NamedTuple):
    """Means over stretches, and between which values most of their rows lie."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def covers(data: CurveFigure) -> bool:
    """Whether a line of the figure would hide its own course."""
    heights = [y for line in data.lines for y in line.y if math.isfinite(y)]
    if data.metric.startswith("eval/") or not heights:
        return False
    span = max(heights) - min(heights)
    return span > 0 and any(_travel(line) > MOST_HEIGHTS * span for line in data.lines)


def _travel(line: Line) -> float:
    """How far up and down a line goes that has rows enough to be smoothed; rows without a number are no way."""
    y = np.array([value for value in line.y if math.isfinite(value)])
    return float(np.abs(np.diff(y)).sum()) if len(y) >= ROWS * STRETCHES else 0.0


def smoothed_band(group: Bundle) -> Band | None:
    """Mean and interval over seeds of each seed's mean over a stretch; the rows' own where they are few.

    No end lies further out than those of the single rows, which are within what is possible.
    """
    band = group.band
    if band is None or len(band.x) < ROWS * STRETCHES:
        return band
    at = np.array(band.x)
    stretch = np.minimum(((at - at[0]) / (at[-1] - at[0]) * STRETCHES).astype(int), STRETCHES - 1)
    rows = [np.flatnonzero(stretch == i) for i in np.unique(stretch)]
    seeds = [_at(line, band.x) for line in group.lines]
    ends = [
        mean_over_seeds([float(seed[part].mean()) for seed in seeds], (min(band.low), max(band.high))) for part in rows
    ]

    def places(values: list[float] | None) -> list[float] | None:
        return None if values is None else [float(np.array(values)[part].mean()) for part in rows]

    return Band(places(band.x) or [], [e.mid for e in ends], [e.low for e in ends], [e.high for e in ends], band.label,
                places(band.updates), places(band.time))  # fmt: skip


def _at(line: Line, steps: Sequence[float]) -> np.ndarray:
    values = dict(zip(line.x, line.y))
    return np.array([values[step] for step in steps])


def meaning(data: CurveFigure) -> str:
    """What is drawn of a figure whose rows would cover it."""
    return MEANING if any(group.band is None for group in data.groups) else MEANING.partition(";")[0]


def smoothed(points: Sequence[tuple[float, float]]) -> Course:
    """Of finite points in the order of the axis; a stretch stands at the mean place of its rows.

    >>> smoothed([(0.0, 1.0), (0.1, 3.0), (9.0, 5.0)])
    Course(x=[0.05, 9.0], mean=[2.0, 5.0], low=[1.2, 5.0], high=[2.8, 5.0])
    """
    known = [(a, b) for a, b in points if math.isfinite(b)]
    first, last = min((a for a, _ in known), default=0.0), max((a for a, _ in known), default=0.0)
    width = (last - first) / STRETCHES or 1.0
    course = Course([], [], [], [])
    for _, stretch in itertools.groupby(known, key=lambda point: min(int((point[0] - first) / width), STRETCHES - 1)):
        xs, ys = zip(*stretch)
        low, high = np.percentile(ys, SHADE)
        for values, value in zip(course, (np.mean(xs), np.mean(ys), low, high)):
            values.append(float(value))
    return course
