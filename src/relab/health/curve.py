"""What can be asked of one metric over a run? Levels of its ends, when it crossed a line, its slope and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relab.health.rule import Evidence
from relab.record.history import Column


class Slope(NamedTuple):
    """Change per step and its standard error."""

    value: float
    error: float

    @property
    def significance(self) -> float:
        if self.error > 0:
            return self.value / self.error
        return math.copysign(math.inf, self.value) if self.value else 0.0


@dataclass(frozen=True)
class Curve:
    """One metric over the run, finite values only."""

    name: str
    steps: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def last(self) -> float:
        return float(self.values[-1])

    def tail(self, share: float) -> Curve:
        """The last part of the rows, at least one."""
        start = min(len(self) - 1, int(len(self) * (1 - share)))
        return Curve(self.name, self.steps[start:], self.values[start:])

    def head(self, share: float) -> Curve:
        end = max(1, int(len(self) * share))
        return Curve(self.name, self.steps[:end], self.values[:end])

    def median(self, share: float = 1.0) -> float:
        """Of the last `share` of the rows."""
        return float(np.median(self.tail(share).values))

    def share_above(self, level: float) -> float:
        return float(np.mean(self.values > level))

    def first_above(self, level: float) -> int | None:
        return self.first(self.values > level)

    def first_below(self, level: float) -> int | None:
        return self.first(self.values < level)

    def first(self, mask: np.ndarray) -> int | None:
        hits = np.flatnonzero(mask)
        return int(self.steps[hits[0]]) if len(hits) else None

    def onset(self, mask: np.ndarray) -> int | None:
        """The step from which the mask holds to the end; else where it first holds."""
        off = np.flatnonzero(~mask)
        start = 0 if not len(off) else int(off[-1]) + 1
        return int(self.steps[start]) if start < len(mask) else self.first(mask)

    def slope(self) -> Slope:
        """Least squares, its error widened for lag-1 autocorrelation: n_eff = n (1 - rho) / (1 + rho)."""
        n = len(self)
        if n < 4:
            return Slope(0.0, math.inf)
        x = (self.steps - self.steps.mean()).astype(np.float64)
        value = float((x * self.values).sum() / max((x * x).sum(), 1e-300))
        rest = self.values - self.values.mean() - value * x
        rho = min(max(lag_one(rest), 0.0), 0.95)
        plain = math.sqrt(float((rest**2).sum()) / (n - 2) / max(float((x * x).sum()), 1e-300))
        return Slope(value, plain * math.sqrt((1 + rho) / (1 - rho)))

    def line_to_zero(self, rows: int = 5, off: float = 0.02) -> float | None:
        """The step at which a curve that falls on one line up to its last row comes to 0; None where it does not, or
        stands at its end: over the last twentieth of its rows, two at least."""
        if len(self) < rows or not self.values[0] > self.last > 0 or self.steps[-1] <= self.steps[0]:
            return None
        if np.ptp(self.values[-max(2, len(self) // 20) :]) == 0:
            return None
        slope = float(self.last - self.values[0]) / float(self.steps[-1] - self.steps[0])
        line = self.values[0] + slope * (self.steps - self.steps[0])
        return float(self.steps[-1]) - self.last / slope if bool((np.abs(self.values - line) < off).all()) else None

    def evidence(self, formula: str = "", points: int = 8) -> Evidence:
        """At most eight points: first, last, lowest and highest among them, so that what a rule saw can be seen."""
        at = telling(self.values, points)
        return Evidence(self.name, [int(s) for s in self.steps[at]], [float(v) for v in self.values[at]], formula)


def telling(values: np.ndarray, points: int = 8) -> list[int]:
    """Which of many values are shown: first, last, lowest and highest, and some evenly between them.

    >>> telling(np.array([0, 1, 9, 2, 3, 4, 5, 6, 7, 8]), 4)
    [0, 2, 9]
    """
    good = np.isfinite(values)
    many = len(values) > points and bool(good.any())
    extremes = (np.where(good, values, np.inf).argmin(), np.where(good, values, -np.inf).argmax())
    ends = list(map(int, extremes)) if many else []
    even = np.linspace(0, len(values) - 1, min(points, len(values)) - len(ends)).round().astype(int)
    return sorted({*even.tolist(), *ends})


def lag_one(x: np.ndarray) -> float:
    total = float((x * x).sum())
    return float((x[1:] * x[:-1]).sum()) / total if total > 0 else 0.0


def finite_curve(name: str, column: Column) -> Curve:
    """The finite values of a column; the column itself, uncopied, where all of them are."""
    good = np.isfinite(column.values)
    return Curve(name, *column) if good.all() else Curve(name, column.steps[good], column.values[good])
