"""Does the return still rise at the end of a run? It does, it does not, or its noise leaves that open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relab.advise.predict import same_group
from relab.base.text import number
from relab.health.curve import Curve, Slope
from relab.health.estimates import clear
from relab.health.rule import Missing
from relab.health.view import View
from relab.record.evaluations import Estimate
from relab.runs.course import course_on, is_return

FEWEST = 6  # points of a course from which its second half says something
SURE = 3.0  # standard errors by which it must have risen
STILL = 0.1  # of the gain of the whole run: a rise under this over the second half is none that matters
ERRORS = 2.0  # by which a slope may be larger than it looks

RISES, STAYS, OPEN = "rises", "stays", "open"


@dataclass(frozen=True)
class Trend:
    """The second half of a run's course, and whether it rises to its end."""

    kind: str  # rises, stays, open
    metric: str
    start: Estimate
    end: Estimate
    errors: float  # of the difference of its ends, or of its slope, whichever is clearer

    def __str__(self) -> str:
        ends = f"{number(self.start.mean)} at step {self.start.step:,}, {number(self.end.mean)} at {self.end.step:,}"
        if self.kind == OPEN:
            return f"whether {self.metric} still rises at the end cannot be told from its noise: {ends}"
        if self.kind == STAYS:
            return f"{self.metric} no longer rises at the end: {ends}"
        errors = clear(self.end.mean - self.start.mean, self.start, self.end)
        sure = "beyond all noise" if math.isinf(errors) else f"{errors:.2g} standard errors"
        return f"{self.metric} still rises at the end: {ends} ({sure})"


def trend_of(view: View) -> Trend:
    """Of what the run is judged by; of its training returns where it has few evaluations. Missing without either."""
    metric, course = _course(view)
    half = course[len(course) // 2 :]
    first, middle, last = half[0], half[len(half) // 2], half[-1]
    errors = max(clear(last.mean - first.mean, first, last), _slope(half).significance)
    goes_on = clear(last.mean - middle.mean, middle, last) >= 1.0
    sound = view.verdict.learned and view.verdict.kind != "unstable"  # a swing upwards is no rise
    rises = errors >= SURE and goes_on and sound and not _levelled(course, _third(course))
    kind = RISES if rises else _otherwise(course)
    return Trend(kind, metric, first, last, errors)


def _otherwise(course: list[Estimate]) -> str:
    """A curve stays only where even a slope at the end of its noise would be no rise that matters: over its second
    half, or, where it rose or came back within that, over its last third."""
    return STAYS if any(_levelled(course, part) for part in (course[len(course) // 2 :], _third(course))) else OPEN


def _third(course: list[Estimate]) -> list[Estimate]:
    return course[-max(len(course) // 3, FEWEST - 2) :]


def _levelled(course: list[Estimate], part: list[Estimate]) -> bool:
    """Whether a part has risen by nothing that matters beside the whole course, even at the end of its noise."""
    slope, gain = _slope(part), max(e.mean for e in course) - min(e.mean for e in course)
    return (slope.value + ERRORS * slope.error) * float(part[-1].step - part[0].step) <= STILL * gain


def _slope(part: list[Estimate]) -> Slope:
    return Curve("", np.array([e.step for e in part]), np.array([e.mean for e in part])).slope()


def _course(view: View) -> tuple[str, list[Estimate]]:
    try:
        return view.earned, view.course(at_least=FEWEST)
    except Missing:
        names = [name for name in ("return/mean", "return/mean_100") if view.has(name) and is_return(name)]
        for name in names:
            points = [e for e in course_on(view.history, name).points if math.isfinite(e.mean)]
            if len(points) >= FEWEST:
                return name, points
        raise


def of_most_seeds(rising: list[tuple[View, Trend]], whole: list[View]) -> tuple[list[tuple[View, Trend]], list[str]]:
    """Runs that rise as more than half of the seeds of their config do, the middle one first; of other configs a
    sentence each. What the luckiest seed does is not what the config does."""
    names, kept, uneven = {view.name for view, _ in rising}, [], []
    for view, trend in rising:
        group = [other for other in whole if other is view or same_group(other, view)]
        high = sorted((other for other in group if other.name in names), key=lambda other: other.verdict.final)
        if 2 * len(high) > len(group):
            place = [other.name for other in high].index(view.name)  # views hold arrays, which have no equality
            kept.append((abs(place - (len(high) - 1) // 2), view, trend))
        elif view is high[0]:
            where = f"in {len(high)} of the {len(group)} seeds of {view.name}'s config"
            uneven.append(f"{where} the return still rises at the end, in the others it does not: more steps are not"
                          " called for")  # fmt: skip
    return [(view, trend) for _, view, trend in sorted(kept, key=lambda one: one[0])], uneven


def lowest_ends(views: Sequence[View]) -> str:
    """The lowest end of these runs; of each environment where there are several, whose returns do not compare."""
    ends: dict[Any, float] = {}
    for view in views:
        if (end := view.standing()) is not None:
            env = view.config.get("env.name")
            ends[env] = min(end.mean, ends.get(env, end.mean))
    return ", ".join(f"{f'{env}: ' if len(ends) > 1 else ''}{number(end)}" for env, end in ends.items())
