"""Is one point of a course clearly above another? With the noise that few episodes tell, and for the pick of many.

Three to five episodes tell little of their own noise: by chance they lie close together, and what is nothing looks like
ten standard errors. So the spread of episodes is pooled over three points in a row, and a difference is held against
Student's t with as many degrees of freedom as that leaves (Welch). And the best of k points is high by chance: what was
picked from k is held against the bound that noise alone passes in one of a hundred such picks (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from relab.record.evaluations import Estimate
from relab.stats.student import t_quantile

Z = 3.0  # standard errors that are clear, of a known noise and a single look
TAIL = 1 - NormalDist().cdf(Z)
PICKS = 0.01  # of courses that stand still: so few may have a point that is taken for more than noise
ENOUGH = 8.0  # degrees of freedom: nine episodes tell their own noise
MANY = 200.0  # degrees of freedom from which a spread is as good as known
NEXT = 3  # points after the first, and at the end: their place is fixed, so that they are no pick
FIRM = 100  # looks for which that end is held against them, so that courses that stand still hardly ever pass
WIDE = 0.975  # of a 95 % interval: two standard errors of a known noise


@dataclass(frozen=True)
class Steadied(Estimate):
    """A point with the noise of its neighbours, for tests alone: what is shown is the point's own."""

    df: float = math.inf


def steadied(points: Sequence[Estimate]) -> list[Estimate]:
    """Each point with the spread of episodes pooled over it and its neighbours, weighted by what each tells of it."""
    return [_pooled(p, points[max(i - 1, 0) : i + 2]) for i, p in enumerate(points)]


def level(points: Sequence[Estimate], places: Sequence[int]) -> Estimate:
    """Some points of a course as one; a single one with the noise of its neighbours."""
    alone = places[0]
    return pooled([points[i] for i in places]) if len(places) > 1 else _pooled(points[alone], points[max(alone - 1, 0) : alone + 2])


def _pooled(point: Estimate, near: Sequence[Estimate]) -> Estimate:
    """Neighbours count for what its own episodes leave open: a policy that has changed since has another spread."""
    if isinstance(point, Steadied) or not (math.isfinite(point.df) and math.isfinite(point.se)):
        return point  # its noise is told by all around it already, or not by episodes
    others = [p for p in near if p is not point and math.isfinite(p.df) and math.isfinite(p.se)]
    theirs = sum(p.df for p in others)
    weight = min(max(ENOUGH - point.df, 0.0) / theirs, 1.0) if theirs else 0.0
    df = point.df + weight * theirs
    square = (point.df * _square(point) + weight * sum(p.df * _square(p) for p in others)) / df
    return Steadied(point.step, point.mean, math.sqrt(square / point.n), point.n, df)


def _square(point: Estimate) -> float:
    """The variance of single episodes."""
    return point.n * point.se * point.se


def pooled(points: Sequence[Estimate]) -> Estimate:
    """Several points as one: their mean, and what all of them tell of its noise."""
    errors, df = [p.se for p in points if math.isfinite(p.se)], math.fsum(p.df for p in points)
    error = math.hypot(*errors) / len(errors) if errors else math.nan
    mean, n = math.fsum(p.mean for p in points) / len(points), sum(p.n for p in points)
    return Steadied(points[-1].step, mean, error, n, df)


def clearly(difference: float, a: Estimate, b: Estimate, looks: int = 1) -> bool:
    """More than Z standard errors, or as much as that is with `looks` at few episodes; an unknown error counts as none."""
    error = error_of(a, b)
    if not difference > Z * error:
        return False
    return error == 0 or difference > bound(round(min(_welch(a, b), MANY), 1), looks) * error


def half_width(a: Estimate, b: Estimate) -> float:
    """Of the 95 % interval of the difference of two points that nobody picked: the first of a course and the last."""
    df = round(min(_welch(a, b), MANY), 1)
    return error_of(a, b) * (NormalDist().inv_cdf(WIDE) if df >= MANY else t_quantile(WIDE, max(df, 1.0)))


def bound(df: float, looks: int) -> float:
    """Standard errors that noise alone passes as seldom as Z of them; for a pick of many, in PICKS of all picks.

    >>> round(bound(200.0, 1), 2), round(bound(8.0, 1), 2), round(bound(200.0, 20), 2), round(bound(8.0, 20), 2)
    (3.0, 4.28, 3.29, 5.04)
    """
    tail = min(TAIL, PICKS / looks)
    return NormalDist().inv_cdf(1 - tail) if df >= MANY else t_quantile(1 - tail, max(df, 1.0))


def unkept(points: Sequence[Estimate]) -> Estimate | None:
    """The three points after the first as one, where it lies above them by more than the error and the last three lie
    far above them: a lucky start that was not kept is no base of a gain. Else None."""
    if len(points) < 1 + 2 * NEXT:
        return None
    first, after, end = steadied(points)[0], pooled(points[1 : 1 + NEXT]), pooled(points[-NEXT:])
    lucky = first.mean - after.mean > error_of(first, after)
    return after if lucky and clearly(end.mean - after.mean, end, after, FIRM) else None


def _welch(a: Estimate, b: Estimate) -> float:
    """Degrees of freedom of the error of a difference."""
    parts = [(p.se * p.se, p.df) for p in (a, b) if math.isfinite(p.se)]
    whole = sum(part for part, _ in parts)
    share = sum((part / whole) ** 2 / df for part, df in parts if part > 0)
    return 1 / share if share > 0 else math.inf


def error_of(a: Estimate, b: Estimate) -> float:
    """Of the difference; what is not known is taken as none."""
    return math.hypot(*(0.0 if math.isnan(e.se) else e.se for e in (a, b)))
