"""When did a run reach a level? By evaluations where it has them, else by means: one lucky episode reaches nothing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from relab.comparison import outcomes
from relab.comparison.numbers import Measure, column_of
from relab.record.history import Column, measured
from relab.runs.grouping import Run
from relab.runs.verdict import is_return

ROLLING = "return/mean_100"
NOTHING = Column(np.array([], np.int64), np.array([]))


class Arrival(NamedTuple):
    """The step at which a run was there; for one that never was, where it ended."""

    step: float
    reached: bool
    source: str


def of(run: Run, measure: Measure, level: float, until: float = math.inf) -> Arrival | None:
    """Up to a step; None for a run without a curve that tells."""
    (steps, values), source = _curve(run, measure.metric)
    steps, values = steps[steps <= until], values[steps <= until]
    if not len(steps):
        return None
    sign = outcomes.DIRECTIONS[measure.direction]
    there = np.flatnonzero(np.isfinite(values) & (sign * values >= sign * level))
    return Arrival(float(steps[there[0] if len(there) else -1]), bool(len(there)), source)


def _curve(run: Run, metric: str) -> tuple[Column, str]:
    """What tells, and what it is called; a metric that is no return of training tells by its own rows."""
    if metric.startswith("eval/") or not is_return(metric):
        source = "evaluations" if metric.startswith("eval/") else f"rows of {metric}"
        return (measured(run.history, metric) if column_of(run, metric) is not None else NOTHING), source
    if run.verdict.metric.startswith("eval/return"):
        return _judged(run), "evaluations"
    rolling = column_of(run, ROLLING)
    return (rolling, "means of 100 episodes") if rolling is not None else (_judged(run), "means of tenths of training")


def _judged(run: Run) -> Column:
    points = run.verdict.points
    return Column(np.array([p.step for p in points], np.int64), np.array([p.mean for p in points], np.float64))
