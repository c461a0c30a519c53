"""When was the level that is called solved reached, for sure, and did it last?

One lucky evaluation, or the mean of five episodes, reaches a level that the policy is far from. So it counts as solved
where a point's own error reaches no more than CLOSE of the way below the level, or where IN_A_ROW points are at it, and
where the run does not end clearly below it; else it is told how often it was reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relab.base.numbers import is_finite
from relab.record.evaluations import Estimate
from relab.record.history import History
from relab.runs.course import Course
from relab.runs.yardstick import Yardstick

CLOSE = 0.05  # of the way from random, else from the start
IN_A_ROW = 3


@dataclass(frozen=True)
class Reached:
    """Which points were at the level: the first one's step, how many, and the step from which on it was solved."""

    step: int
    times: int
    solved: int | None


def reached(run: History, course: Course, yard: Yardstick) -> tuple[float | None, Reached | None]:
    """The level, eval.stop_at or what Gymnasium calls solved, and how it was reached; no level that others set and that
    was not."""
    evals = run.config.get("eval")
    stop = evals.get("stop_at") if isinstance(evals, dict) else None
    own = is_finite(stop) and course.evaluated
    level = float(stop) if own else yard.solved  # type: ignore[arg-type]
    if level is None:
        return None, None
    good = [p for p in course.points if math.isfinite(p.mean)]
    there = [p for p in good if p.mean >= level]
    if not there:
        return (level if own else None), None
    base = yard.random.mean if yard.random else good[0].mean
    return level, Reached(there[0].step, len(there), _solved(good, level, level - CLOSE * abs(level - base)))


def _solved(good: Sequence[Estimate], level: float, close: float) -> int | None:
    if good[-1].mean + _error(good[-1]) < close:
        return None
    rows = [good[i : i + IN_A_ROW] for i in range(len(good))]
    return next((row[0].step for row in rows if row[0].mean >= level and _sure(row, level, close)), None)


def _sure(row: Sequence[Estimate], level: float, close: float) -> bool:
    """The first of a row; by itself, or because those after it are as high."""
    return row[0].mean - _error(row[0]) >= close or (len(row) == IN_A_ROW and all(p.mean >= level for p in row))


def _error(point: Estimate) -> float:
    """Not known is taken as none."""
    return 0.0 if math.isnan(point.se) else point.se
