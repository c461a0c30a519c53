"""Did evaluations change over training, more than chance? Counts by chi-square, levels by their trend; by episode.

All agents of an episode meet one danger, so counts spread more than independent trials would. The spread between the
episodes of one evaluation says by how much (the design effect), and chi-square is divided by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relab.schedules.chance import chi2_above, constancy
from relab.stats import slope

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Change:
    """A test that nothing changed: p as if all agents were independent, and clustered by episode."""

    name: str
    counts: tuple[int, ...]
    trials: int
    chi2: float
    df: int
    p: float
    design: float | None  # how much more episodes spread than independent agents; None: no counts by episode
    p_clustered: float | None

    @property
    def rate(self) -> float:
        return sum(self.counts) / self.trials


def counts_change(rows: Rows, name: str = "step_one") -> Change | None:
    """Of a count in every evaluation (`step_one_count` of `agents`); None under two evaluations or without counts."""
    pairs = [(row["values"].get(f"{name}_count"), row["values"].get("agents")) for row in rows]
    if len(pairs) < 2 or any(x is None or not n for x, n in pairs):
        return None
    counts, trials = [float(x) for x, _ in pairs], [float(n) for _, n in pairs]
    if not 0 < sum(counts) < sum(trials) < math.inf:
        return None
    test = constancy(counts, trials, rare=sum(counts) < 0.05 * sum(trials))
    design = design_effect(rows, name)
    clustered = None if design is None else chi2_above(test.chi2 / max(design, 1.0), test.df)
    whole, total = tuple(int(x) for x in counts), int(sum(trials))
    return Change(name, whole, total, test.chi2, test.df, test.p, design, clustered)


def design_effect(rows: Rows, name: str = "step_one") -> float | None:
    """Variance of counts between episodes of one evaluation, over what independent agents would give.

    >>> one = {"episodes": [{"agents": 100, "step_one": x} for x in (0, 0, 20, 20)]}
    >>> round(design_effect([one]), 1)
    14.8
    """
    top, df = 0.0, 0
    for row in rows:
        known = [e for e in row.get("episodes") or [] if e.get("agents") and e.get(name) is not None]
        each = [(e[name], e["agents"]) for e in known]
        hits, agents = (np.array(x, float) for x in zip(*each)) if len(each) > 1 else (np.zeros(0), np.zeros(0))
        rate = hits.sum() / agents.sum() if agents.sum() else 0.0
        if 0 < rate < 1:
            top += float(((hits - agents * rate) ** 2 / (agents * rate * (1 - rate))).sum())
            df += len(each) - 1
    return top / df if df else None


@dataclass(frozen=True)
class Trend:
    """A straight line through the evaluations of one number."""

    name: str
    first: float
    last: float
    per_ten: float  # change in ten iterations
    low: float
    high: float
    p: float
    n: int


def trend(rows: Rows, name: str) -> Trend | None:
    """None under three evaluations that have the number."""
    pairs = [(row["iteration"], row["values"][name]) for row in rows if row["values"].get(name) is not None]
    if len(pairs) < 3:
        return None
    x, y = (np.array(each, float) for each in zip(*pairs))
    line = slope(x, y)
    return Trend(name, float(y[0]), float(y[-1]), 10 * line.slope, 10 * line.low, 10 * line.high, line.p, len(x))


def medians(values: Sequence[float], window: int = 3) -> list[float | None]:
    """Rolling medians; None until the window is full."""
    return [None if k + 1 < window else float(np.median(values[k + 1 - window : k + 1])) for k in range(len(values))]


def pooled(rows: Rows) -> dict[str, float]:
    """Several evaluations as one: means of levels, sums of counts."""
    means = {}
    for name in ("avg_final", "min_final", "death_p10"):
        values = [row["values"][name] for row in rows if row["values"].get(name) is not None]
        means[name] = float(np.mean(values)) if values else math.nan
    early = [n for n in rows[0]["values"] if n.startswith("early_death_")][:1]
    sums = {name: sum(float(row["values"].get(name) or 0) for row in rows) for name in ("step_one_count", "agents")}
    levels = {n: float(np.mean([row["values"].get(n, math.nan) for row in rows])) for n in early}
    return means | levels | sums | {"evaluations": len(rows)}
