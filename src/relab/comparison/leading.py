"""What moved before the return fell? Lagged rank correlation over runs, with a permutation test. Exploratory.

For each metric: Spearman's correlation of its change with the change of the return some evaluations later, averaged
over runs. The largest over the lags is held against the same number after the metric was shifted in a circle within
each run, which keeps its own smoothness and breaks its time. Holm's correction over the metrics; a cause it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from relab import stats
from relab.comparison.numbers import column_of
from relab.runs.grouping import Run

LAGS = (1, 2, 3)
LEAST_POINTS = 10  # evaluations of a run
REPS = 499
SKIPPED = ("time/", "eval/", "return/", "data/env_steps", "data/agent_steps", "data/sim_steps", "data/eval_steps",
           "data/iteration", "data/updates", "data/episodes")  # fmt: skip


class Lead(NamedTuple):
    """A metric that moved before the return."""

    metric: str
    lag: int  # evaluations
    rho: float
    p: float  # permutation
    adjusted: float  # Holm over the metrics
    runs: int


def ranks(x: np.ndarray) -> np.ndarray:
    """1 to n, ties at their mean."""
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[place]


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Rank correlation; 0 where one of them is constant."""
    a, b = ranks(x) - (len(x) + 1) / 2, ranks(y) - (len(y) + 1) / 2
    spread = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / spread) if spread > 0 else 0.0


def collapsed(runs: Sequence[Run]) -> list[Run]:
    """Runs that had learned something and lost it, in whole or in part."""
    return [run for run in runs if run.verdict.kind in ("lost", "part")]


def leading(runs: Sequence[Run], metric: str, reps: int = REPS, seed: int = 0) -> list[Lead]:
    """Metrics by how clearly they moved before the return did, clearest first."""
    names = sorted({name for run in runs for name in run.history.columns if not name.startswith(SKIPPED)})
    lags = [(name, *_lead(_changes(runs, name, metric), reps, seed)) for name in names if _changes(runs, name, metric)]
    adjusted = stats.holm([p for *_, p, _ in lags])
    leads = [Lead(name, lag, rho, p, adj, n) for (name, lag, rho, p, n), adj in zip(lags, adjusted)]
    return sorted(leads, key=lambda lead: (lead.adjusted, -abs(lead.rho)))


def _changes(runs: Sequence[Run], name: str, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per run: changes of the metric and of the return between evaluations."""
    series = []
    for run in runs:
        cause, effect = column_of(run, name), column_of(run, metric)
        if cause is None or effect is None or len(effect.steps) < LEAST_POINTS or len(cause.steps) < LEAST_POINTS:
            continue
        good, known = np.isfinite(effect.values), np.isfinite(cause.values)
        if good.sum() < LEAST_POINTS or known.sum() < LEAST_POINTS:
            continue
        at = effect.steps[good]
        order = np.argsort(cause.steps[known], kind="stable")
        values = np.interp(at, cause.steps[known][order], cause.values[known][order])
        if np.ptp(values) > 0:
            series.append((np.diff(values), np.diff(effect.values[good])))
    return series


def _lead(series: Sequence[tuple[np.ndarray, np.ndarray]], reps: int, seed: int) -> tuple[int, float, float, int]:
    """The lag with the largest mean correlation, that correlation, its permutation p, and the number of runs."""
    rng = np.random.default_rng(seed)
    tables = [_by_shift(x, y) for x, y in series]
    observed = np.mean([table[0] for table in tables], axis=0)
    best = int(np.argmax(np.abs(observed)))
    drawn = np.mean([table[rng.integers(1, len(table), reps)] for table in tables], axis=0)
    p = (1 + np.sum(np.abs(drawn).max(1) >= abs(observed[best]) - 1e-12)) / (1 + reps)
    return LAGS[best], float(observed[best]), float(p), len(series)


def _by_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[shift, lag]: the correlation with y after x was shifted in a circle; the first row is x as it was."""
    rolled = [np.roll(x, shift) for shift in range(len(x))]
    return np.array([[spearman(each[:-lag], y[lag:]) for lag in LAGS] for each in rolled])
