"""Which bar implies which? Conditions as bounds on one distribution function, so that different metrics compare.

P(T < t) <= q holds exactly when the q-quantile is at least t. So a share below t, a quantile, a count and a ratio of
one quantity are all statements about F(t) = P(T < t), which never falls in t; bars that look different can be ordered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from relab.schedules.gate import Condition

QUANTILE = re.compile(r"(?:^|[_/])p(\d{1,2})$")
BELOW = re.compile(r"_(\d+)$")
OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}


@dataclass(frozen=True)
class Bound:
    """F(at) <= level where upper, else >=; a metric without a distribution is bounded at 0."""

    of: str
    at: float
    level: float
    upper: bool
    strict: bool
    condition: Condition

    @property
    def over(self) -> tuple[str, int]:
        """The window: bars over different windows look at different values."""
        return self.condition.statistic, self.condition.window


def kind(condition: Condition) -> str:
    """quantile, below, count or share of what `of` names; plain without one."""
    if not condition.of:
        return "plain"
    if QUANTILE.search(condition.metric):
        return "quantile"
    if BELOW.search(condition.metric):
        return "below"
    return "count" if condition.metric.endswith("_count") else "share"


def bound(condition: Condition, n: int | None = None) -> Bound:
    """A condition as a bound; a count without its number of trials can only be held against itself."""
    upper, strict = condition.asks_low, condition.comparison in ("<", ">")
    bar, form = condition.threshold, kind(condition)
    if form == "quantile":  # Q_q >= t is F(t) <= q: the direction turns
        q = float(QUANTILE.search(condition.metric)[1]) / 100  # type: ignore[index]
        return Bound(condition.of, bar, q, not upper, upper and strict, condition)
    if form == "below":
        at = float(BELOW.search(condition.metric)[1])  # type: ignore[index]
        return Bound(condition.of, at, bar, upper, strict, condition)
    trials = condition.n or n
    if form == "count" and trials:
        return Bound(condition.of, 0.0, bar / trials, upper, strict, condition)
    name = condition.of if form == "share" else condition.metric
    return Bound(name, 0.0, bar, upper, strict, condition)


def opposite(condition: Condition) -> Condition:
    """What must hold for a condition not to: failure turned into something to keep."""
    return replace(condition, comparison=OPPOSITE[condition.comparison])


def implies(a: Bound, b: Bound) -> bool:
    """Whether a's bar makes b's superfluous, the windows apart: F never falls."""
    if a.of != b.of or a.upper != b.upper:
        return False
    tighter = a.level < b.level if a.upper else a.level > b.level
    as_tight = a.level == b.level and (a.strict or not b.strict)
    covers = a.at >= b.at if a.upper else a.at <= b.at
    return covers and (tighter or as_tight)


def conflict(a: Bound, b: Bound) -> bool:
    """Whether no distribution meets both: F(t') <= F(t) <= c < c' <= F(t') for t' <= t."""
    if a.of != b.of or a.upper == b.upper:
        return False
    high, low = (a, b) if a.upper else (b, a)
    touching = high.level == low.level and (high.strict or low.strict)
    return low.at <= high.at and (low.level > high.level or touching)


def impossible(a: Bound) -> bool:
    """A share or count asked to leave [0, 1]."""
    if kind(a.condition) not in ("below", "share", "count") or a.of == a.condition.metric:
        return False
    return a.level < 0 or (a.strict and a.level == 0) if a.upper else a.level > 1 or (a.strict and a.level == 1)


def in_words(a: Bound, like: Condition) -> str:
    """The same bound in the unit of another condition: `p10 >= 100`."""
    form = kind(like)
    if form == "quantile":
        q = float(QUANTILE.search(like.metric)[1]) / 100  # type: ignore[index]
        if a.upper and a.level <= q:
            return f"{like.metric} >= {a.at:g}"
        if not a.upper and a.level >= q:
            return f"{like.metric} <= {a.at:g}"
    sign = ("<" if a.strict else "<=") if a.upper else (">" if a.strict else ">=")
    return (
        f"{like.metric} {sign} {a.level:.4g}"
        if form in ("share", "plain")
        else f"P({a.of} < {a.at:g}) {sign} {a.level:g}"
    )
