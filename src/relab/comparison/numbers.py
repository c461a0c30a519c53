"""What is a run's number, and how sure is it? Values at a common step, areas, peaks, the noise of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from relab import stats
from relab.base.numbers import is_number
from relab.base.places import cut_short
from relab.comparison import answer as answers
from relab.comparison import outcomes
from relab.comparison.outcomes import Outcome
from relab.config.views import flatten
from relab.record.evaluations import evaluations, outcome_of
from relab.record.history import Column, History, end_rows, measured
from relab.record.state import diverged_at, steps_of
from relab.runs.grouping import Run

ALIKE = 0.05  # lengths that differ by less than this share are the same length
LEAST = answers.LEAST
STUNTED, FEW_ARMS = 0.5, 0.25  # of the usual length; of the arms
ANY = (-math.inf, math.inf)
NEAR = 2.0  # standard errors of a difference: an evaluation this close to the peak could have been it


def column_of(run: Run, metric: str) -> Column | None:
    column = run.history.columns.get(metric)
    return column if column is not None and len(column.values) else None


# ---- Lengths


def last_step(run: Run, metric: str) -> float:
    """Where its curve ends; a run that stopped because it had reached its level would have stayed there.

    NaN of one that diverged: there would have been no number however long it had gone on.
    """
    column = column_of(run, metric)
    if column is None or diverged_at(run.history.meta) is not None:
        return math.nan
    return math.inf if stopped_at_level(run, metric) else float(column.steps[-1])


def stopped_at_level(run: Run, metric: str) -> bool:
    level, column = flatten(run.history.config).get("eval.stop_at"), column_of(run, metric)
    known = is_number(level) and metric.startswith("eval/")
    return bool(known and column is not None and column.values[-1] >= level)


def common_step(arms: Sequence[Sequence[Run]], metric: str) -> tuple[float, bool]:
    """(the step at which all arms are compared, whether some went on beyond it).

    An arm is as long as half of its runs are: one that crashed or was ended early must not cut the others short. Nor
    must arms that are less than half as long as is usual: where none of their runs says that it finished they were cut
    off, and two whole arms are enough to compare; where some do, if they are fewer than a quarter of the arms, or of
    the runs beside two whole arms. They are left out of the choice, and their runs have no number at the common step.
    """
    lengths = [(arm, length) for arm in arms if math.isfinite(length := arm_length(arm, metric))]
    if not lengths:  # every run stopped at its level: each is compared where it stopped
        return furthest([run for arm in arms for run in arm], metric), False
    usual = sorted(length for _, length in lengths)[len(lengths) // 2]
    whole = [length for _, length in lengths if length >= STUNTED * usual]
    meant = [length for arm, length in lengths if length >= STUNTED * usual or _some_finished(arm)]
    runs = [len(arm) for arm, length in lengths if length < STUNTED * usual]
    few = len(runs) < FEW_ARMS * len(lengths)
    few = few or (len(whole) > 1 and sum(runs) < FEW_ARMS * sum(len(arm) for arm, _ in lengths))
    counted = whole if few else meant if len(meant) > 1 else [length for _, length in lengths]
    shortest, longest = min(counted), max(counted)
    return (shortest, True) if shortest < (1 - ALIKE) * longest else (longest, False)


def _some_finished(arm: Sequence[Run]) -> bool:
    return any(run.state == "finished" for run in arm)


def furthest(runs: Sequence[Run], metric: str) -> float:
    """The last step that any of them has."""
    return max((float(c.steps[-1]) for run in runs if (c := column_of(run, metric)) is not None), default=0.0)


def arm_length(arm: Sequence[Run], metric: str) -> float:
    """NaN where no run says: all stopped at their level, or none has the metric.

    Of runs that were all cut on their way, at different steps, as far as each of them came; one that is less than half
    as long as usual cuts nobody.
    """
    ends = [(run.state == "finished", e) for run in arm if math.isfinite(e := last_step(run, metric))]
    some = sorted(e for done, e in ends if done) or sorted(e for _, e in ends)
    usual = some[(len(some) - 1) // 2] if some else math.nan
    if some and all(unfinished(run) for run in arm):
        return min(e for e in some if e >= STUNTED * usual)
    return usual


def unfinished(run: Run) -> bool:
    """Whether it has not come to the steps that were planned for it, and might have: one that diverged could not."""
    if diverged_at(run.history.meta) is not None:
        return False
    return run.state != "finished" and cut_short(steps_of(run.history), run.history.config.get("total_steps"))


def cut(history: History, metric: str, step: float) -> History:
    """The history as it was at a step, as far as outcomes look at it."""
    kept = {}
    for name in (metric, "eval/episodes"):
        if name in history.columns:
            steps, values = measured(history, name)
            kept[name] = Column(steps[steps <= step], values[steps <= step])
    gone = diverged_at(history.meta)
    meta = history.meta if gone is None or gone <= step else history.meta | {"status": "interrupted"}
    return replace(history, meta=meta, columns=kept, evals=[row for row in history.evals if row.get("step", 0) <= step])


# ---- A run's number


class Measure(NamedTuple):
    """How each run becomes one number."""

    metric: str
    at: str
    last: int
    level: float | None
    direction: str
    tenth: bool = False  # each run by the last tenth of its own rows, as everywhere; `last` is how many that is usually
    bounds: tuple[float, float] = ANY  # the lowest and highest number that a run can have, where that is known

    @property
    def sign(self) -> int:
        """+1 where a larger number is better; steps are better when fewer."""
        return -1 if self.at == "first_step_reaching" else outcomes.DIRECTIONS[self.direction]

    @property
    def words(self) -> str:
        if self.at == "first_step_reaching":
            return f"steps until {self.metric} reaches {self.level:g}"
        if self.tenth:
            return f"mean of the last tenth of {self.metric}"
        end = "mean of the last tenth of" if outcomes.by_its_end(self.metric) else "final"
        names = {"final": f"{end} {self.metric}", "success_rate": "success rate of the last evaluation"}
        return names.get(self.at, f"mean of the last {self.last} {self.metric}")


def outcome(run: Run, measure: Measure, step: float, beyond: bool) -> Outcome:
    """One number of a run at the common step; none for one that ended well before it."""
    seed = run.seed if type(run.seed) is int else None
    history = cut(run.history, measure.metric, step) if beyond and measure.at != "first_step_reaching" else run.history
    m = _own_tenth(history, measure.metric) if measure.tenth else measure.last
    taken = outcomes.outcome(history, measure.at, measure.metric, m=m, reach=measure.level, direction=measure.direction)
    taken = replace(taken, seed=seed if taken.seed is None else taken.seed, run=run.name)
    logged, end = column_of(run, measure.metric), last_step(run, measure.metric)
    if history is not run.history and logged is not None and float(logged.steps[0]) > step:
        return replace(taken, note=f"its first {measure.metric} is at step {logged.steps[0]:,}, after step {step:,.0f}")
    if measure.at != "first_step_reaching" and end < (1 - ALIKE) * step:
        return replace(taken, value=math.nan, note=f"{run.state} at step {end:,.0f} of {step:,.0f}")
    return taken


def _own_tenth(history: History, metric: str) -> int:
    """The rows that are the run's outcome, as runs.course has it."""
    return end_rows(measured(history, metric).steps) if metric in history.columns else 1


def finite(outcomes: Sequence[Outcome]) -> np.ndarray:
    return np.array([x.value for x in outcomes if math.isfinite(x.value)])


def interval(outcomes: Sequence[Outcome], measure: Measure) -> stats.SeedMean:
    """A variant's mean with 95 %; no ends under five seeds, none beyond what is possible."""
    mean = stats.mean_over_seeds([x.value for x in outcomes], measure.bounds)
    if measure.at == "first_step_reaching":
        return mean._replace(low=math.nan, high=math.nan)
    if measure.at == "success_rate" and mean.known:
        good = [x for x in outcomes if math.isfinite(x.value)]
        trials = np.array([x.episodes for x in good], np.float64)
        rate = stats.clustered_rate(np.round(finite(outcomes) * trials), trials)
        return mean._replace(low=rate.low, high=rate.high)
    return mean


def improvement(a: Sequence[Outcome], b: Sequence[Outcome], measure: Measure) -> stats.Interval | None:
    """P(a run of b is better than one of a), ties half; a level never reached is worse than any time."""
    x, y = (_ranked(arm, measure) for arm in (a, b))
    return stats.improvement(x, y) if min(len(x), len(y)) >= LEAST else None


def _ranked(arm: Sequence[Outcome], measure: Measure) -> np.ndarray:
    good = [x for x in arm if math.isfinite(x.value)]
    far = 1e300  # finite, and beyond any step
    return np.array([measure.sign * (x.value if x.reached else far) for x in good])


# ---- The whole curve


def area(run: Run, metric: str, low: float, high: float) -> float:
    """The mean height of the curve between two steps, by trapezoids; NaN where it holds NaN or does not span it."""
    curve = column_of(run, metric)
    if curve is None or high <= low or curve.steps[0] > low or not np.isfinite(curve.values).all():
        return math.nan
    if not last_step(run, metric) >= (1 - ALIKE) * high:
        return math.nan
    steps, first = np.unique(curve.steps, return_index=True)
    grid = np.unique(np.concatenate([[low, high], steps[(steps > low) & (steps < high)]]))
    heights = np.interp(grid, steps, curve.values[first])
    return float(np.sum(np.diff(grid) * (heights[1:] + heights[:-1]) / 2) / (high - low))


def shared_range(runs: Sequence[Run], metric: str, step: float) -> tuple[float, float]:
    """From the last of the first steps to the common step."""
    starts = [float(c.steps[0]) for run in runs if (c := column_of(run, metric)) is not None]
    return max(starts, default=math.nan), step


# ---- The noise of an evaluation


def noise(runs: Sequence[Run], metric: str) -> list[float]:
    """Each run's standard error at its last evaluation, where single episodes are known."""
    mode, errors = metric.rpartition("_")[2], []
    for run in runs:
        played = evaluations(run.history.evals, mode, outcome_of(run.history.meta))
        if played and metric == played[-1].metric and math.isfinite(played[-1].se):
            errors.append(played[-1].se)
    return errors


# ---- The best of k evaluations


class Peak(NamedTuple):
    """A run's best evaluation beside its end."""

    peak: float
    final: float
    last: float  # mean of the last m
    bias: float  # how much higher than the truth the best of k is by chance alone; NaN where the noise is unknown
    k: int
    m: int = 1  # evaluations that there are, at most as many as were wanted


def peak(run: Run, metric: str, m: int, sign: int, step: float = math.inf) -> Peak | None:
    """Up to a step; None for curves that are no evaluations: the best of 10,000 training rows means nothing."""
    points = [p for p in run.verdict.points if math.isfinite(p.mean) and p.step <= step]
    if run.verdict.metric != metric or not metric.startswith("eval/") or len(points) < 2:
        return None
    values, errors = sign * np.array([p.mean for p in points]), np.array([p.se for p in points])
    best = int(values.argmax())
    ends = sign * float(values[best]), points[-1].mean, float(np.mean(sign * values[-m:]))
    near = values[best] - values <= NEAR * np.hypot(errors, errors[best])
    near[best] = True
    if not np.isfinite(errors[near]).all():
        return Peak(*ends, math.nan, 0, min(m, len(points)))
    k = int(near.sum())
    return Peak(*ends, float(np.sqrt(np.mean(errors[near] ** 2))) * expected_maximum(k), k, min(m, len(points)))


@lru_cache(maxsize=1024)
def expected_maximum(k: int) -> float:
    """E of the largest of k independent standard normal numbers: the integral of 1 - F(x)^k - (1 - F(x))^k over x > 0.

    >>> round(expected_maximum(2), 4), round(expected_maximum(10), 3)
    (0.5642, 1.539)
    """
    if k <= 1:
        return 0.0
    x = np.linspace(0.0, 8.0, 2001)
    share = np.array([NormalDist().cdf(float(v)) for v in x])
    heights = 1 - share**k - (1 - share) ** k
    return float(np.sum((heights[1:] + heights[:-1]) / 2) * (x[1] - x[0]))


def expected_best_rate(p: float, n: int, k: int) -> float:
    """E of the best of k success rates, each of n episodes with the true rate p: sum of P(best > i/n) / n."""
    log = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)]
    if p <= 0 or p >= 1:
        return p
    mass = np.exp(np.array(log) + np.arange(n + 1) * math.log(p) + (n - np.arange(n + 1)) * math.log1p(-p))
    below = np.minimum(np.cumsum(mass), 1.0)
    return float(np.sum(1 - below[:-1] ** k) / n)
