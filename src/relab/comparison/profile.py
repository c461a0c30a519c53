"""How do variants do over several tasks? Scores on one scale, the share of runs above each level, stratified bootstrap.

A score is 0 for a random policy and 1 for the highest return there can be, else the best published one
(relab.record.levels).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.comparison.numbers import LEAST
from relab.health.rule import Missing
from relab.health.view import View
from relab.record import levels
from relab.runs.grouping import Run
from relab.stats import means

TAUS = (0.25, 0.5, 0.75, 0.9, 1.0)
MANY_TASKS = 8  # from here on the interquartile mean is worth its name
REPS = 2000


class Scale(NamedTuple):
    """Where 0 and 1 are."""

    random: float
    top: float
    source: str

    def score(self, values: np.ndarray) -> np.ndarray:
        return (np.asarray(values, np.float64) - self.random) / (self.top - self.random)


def scale_of(run: Run) -> Scale | None:
    """The scale of a run's environment; None where its ends are not known."""
    view = View(run.history, run.name)
    try:
        low = view.random()[0]
    except Missing:
        return None
    if view.knows_ceiling:
        return Scale(low, view.ceiling(), "ceiling")
    name = env_id(str(view.spec.get("env")))
    best = next(iter(levels.of(name)), None)
    return Scale(low, best.mean, f"published: {best.algo}, {best.source}") if best and best.mean > low else None


def env_id(name: str) -> str:
    """The table's spelling of an environment: relab's pendulum-v1 is Pendulum-v1 there."""
    plain = name.removeprefix("gym:").lower()
    known = {x.env.lower(): x.env for x in levels.published()} | {x.lower(): x for x in levels.measured()}
    return known.get(plain, name)


@dataclass(frozen=True)
class Share:
    """The share of runs at or above a score, with its ends."""

    tau: float
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """How a variant stands over several tasks; the interquartile mean (with its ends) is for many tasks."""

    label: str
    tasks: int
    runs: int
    mean: float
    shares: list[Share]
    iqm: list[float] | None

    def to_dict(self) -> Document:
        known = asdict(self)
        return known if self.iqm is not None else {key: x for key, x in known.items() if key != "iqm"}


def profile(scores: Mapping[str, Sequence[np.ndarray]], reps: int = REPS, seed: int = 0) -> list[Standing]:
    """For each variant (an array of scores a task): the share of runs at or above each level, each task weighing alike.

    The interval is the percentile bootstrap with seeds drawn again within each task; none under five runs a task.
    """
    rows = []
    for label, tasks in scores.items():
        drawn = _drawn(tasks, reps, seed) if all(len(x) >= LEAST for x in tasks) else None
        shares = [_share(tasks, drawn, tau) for tau in TAUS]
        mean = float(np.mean([x.mean() for x in tasks]))
        iqm = list(stats.iqm_interval(tasks)[:3]) if len(tasks) >= MANY_TASKS else None
        rows.append(Standing(label, len(tasks), sum(map(len, tasks)), mean, shares, iqm))
    return rows


def _drawn(tasks: Sequence[np.ndarray], reps: int, seed: int) -> list[np.ndarray]:
    """Each task's resamples as rows."""
    return [means.bootstrap([task], lambda x: x, reps, seed + i) for i, task in enumerate(tasks)]


def _share(tasks: Sequence[np.ndarray], drawn: list[np.ndarray] | None, tau: float) -> Share:
    at = float(np.mean([(task >= tau - 1e-9).mean() for task in tasks]))
    if drawn is None:
        return Share(tau, at, math.nan, math.nan)
    again = np.mean([(rows >= tau - 1e-9).mean(1) for rows in drawn], axis=0)
    low, high = np.quantile(again, [0.025, 0.975])
    if all((task >= tau - 1e-9).all() or not (task >= tau - 1e-9).any() for task in tasks):
        # All runs of a task agree, so draws from them know nothing of the ones that would not: a rate of that many runs
        # that all agree has an interval of its own width (Wilson).
        rate = stats.wilson(at * sum(map(len, tasks)), sum(map(len, tasks)))
        low, high = min(low, rate.low), max(high, rate.high)
    return Share(tau, at, float(low), float(high))
