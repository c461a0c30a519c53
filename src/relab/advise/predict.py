"""What will the change do, and what does it cost? From runs that have the proposed value, else bounds, else nothing.

No number here is a wish: a difference comes from runs beside this one (with an interval over seeds where both sides
have two), bounds from the random policy and the highest return, seconds from the parent's own timing. Runs of which
half or more have faults of their own say nothing of what a change would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relab import stats
from relab.advise.proposal import Cost, Predicted
from relab.base.numbers import is_finite
from relab.base.text import number, plural
from relab.config.views import diff
from relab.health.examine import well
from relab.health.rule import Missing
from relab.health.view import View
from relab.record.clock import CLOCK, elapsed
from relab.record.evaluations import Estimate
from relab.record.state import seed_of
from relab.runs import identity

QUIET = ("seed", "device", "threads", "save.", "eval.")  # settings that change no learning
ENOUGH = 5  # seeds from which an interval has been shown to hold (docs/statistics.md)
LARGEST = 2**53  # what JSON holds exactly
STARTUP_S = 4.0  # process start and imports


def predict(view: View, changes: Mapping[str, Any], others: Sequence[View]) -> Predicted:
    """The outcome of runs that have the proposed values minus that of runs like this one."""
    standing, metric = view.standing(), metric_of(view)
    if standing is None:
        return Predicted(None, None, None, None, "no return to predict: the run has neither evaluations nor returns")
    if all(key.startswith(QUIET) for key in changes):
        return Predicted(metric, 0.0, None, None, "changes what is measured, not what is learned")
    steps = changes.get("total_steps", (None, view.config.get("total_steps")))[1]
    if view.unfinished:  # it can be held against others up to where it ended, and no further
        steps = min(steps, view.last_step) if is_finite(steps) else view.last_step
    others = [v for v in others if not v.unfinished or (is_finite(steps) and v.last_step >= steps)]
    here = finals([view, *(v for v in others if same_group(v, view))], steps)
    there = [v for v in others if has_values(v, changes) and same_task(v, view) and len(finals([v], steps))]
    there = [v for v in there if not unlike(v, view, changes)] or [v for v in there if longer(v, view, changes)]
    if there and 2 * sum(map(well, there)) > len(there):
        return from_runs(metric, here, there, view, changes, steps)
    return bounds(view, metric, standing.mean, f"{there[0].name} has faults of its own" if there else "no data")


def from_runs(
    metric: str, here: np.ndarray, there: list[View], view: View, changes: Mapping[str, Any], steps: Any
) -> Predicted:
    values = finals(there, steps)
    delta, low, high, note = compare(here, values)
    runs = there[0].name if len(there) == 1 else f"{there[0].name} and {len(there) - 1} more"
    other = sorted(unlike(there[0], view, changes))
    apart = f", with another {', '.join(other[:3])}{' ...' if len(other) > 3 else ''} too" if other else ""
    means = [f"{number(float(x.mean()))} ({plural(len(x), 'seed')})" for x in (values, here)]
    return Predicted(metric, delta, low, high, f"{runs}{apart}: {means[0]} against {means[1]}; {note}")


def compare(a: np.ndarray, b: np.ndarray) -> tuple[float, float | None, float | None, str]:
    """mean(b) - mean(a) with an interval where both have two seeds or more."""
    delta = float(b.mean() - a.mean())
    if min(len(a), len(b)) < 2:
        return delta, None, None, "no interval under two seeds a side"
    interval = stats.size_of_difference(a, b)
    if interval.low == interval.high:
        return delta, None, None, "no interval: the seeds agree exactly"
    rough = "" if min(len(a), len(b)) >= ENOUGH else f", rough under {ENOUGH} seeds"
    return delta, interval.low, interval.high, f"95 % interval over seeds{rough}"


def worsens(predicted: Predicted) -> bool:
    """Whether what is known of a change says that it does harm."""
    return predicted.delta is not None and predicted.delta < 0 and (predicted.high is None or predicted.high < 0)


def bounds(view: View, metric: str, now: float, why: str = "no data") -> Predicted:
    """From the random policy's level to the highest return; a gain is possible, none is promised."""
    ends = [_level(view, "random"), _level(view, "ceiling")]
    names = [f"{word} {number(x)}" for word, x in zip(("random", "the ceiling"), ends) if x is not None]
    if not names:
        return Predicted(metric, None, None, None, f"{why}: no run here tells, and the record has no bounds")
    if ends[0] is not None and ends[0] > now:
        names[0] = f"no change (below {names[0]})"  # what is worse than random may well stay so
    low = None if ends[0] is None else min(0.0, ends[0] - now)
    high = None if ends[1] is None else max(0.0, ends[1] - now)
    return Predicted(metric, None, low, high, f"{why}: bounds only, from {' to '.join(names)}; now {number(now)}")


def _level(view: View, which: str) -> float | None:
    try:
        return view.random()[0] if which == "random" else view.ceiling()
    except Missing:
        return None


def metric_of(view: View) -> str:
    """The name of what View.standing() measures."""
    if view.has_evals(view.by):
        return view.judged_by
    return view.earned


# ---- Which runs speak about it


def finals(views: Sequence[View], steps: Any = None) -> np.ndarray:
    """One number a seed, of the last evaluation up to `steps`: a seed that ran twice is no second sample."""
    ends: dict[str, float] = {}
    for view in views:
        end = standing_at(view, steps)
        if end is not None and math.isfinite(end.mean):
            seed = seed_of(view.history, view.name)
            ends.setdefault(view.name if seed is None else repr(seed), end.mean)
    return np.array(list(ends.values()), np.float64)


def standing_at(view: View, steps: Any) -> Estimate | None:
    """How good the run was after so many steps: a longer run is not compared by what it earned later."""
    if is_finite(steps) and view.has_evals(view.by):
        early = [e for e in view.evals() if e.step < steps + max(iteration_steps(view), 1)]  # it ends with a whole one
        return early[-1] if early else None
    return view.standing(steps + max(iteration_steps(view), 1) if is_finite(steps) else math.inf)


def iteration_steps(view: View) -> int:
    """Steps of one iteration: of relab's runs from their rows, one an iteration; else as far as the settings say."""
    sizes = [view.config.get(key) for key in ("algo.envs", "algo.steps")]
    if all(type(x) is int for x in sizes):
        return sizes[0] * sizes[1]  # type: ignore[operator]
    columns = view.history.columns.values() if view.history.trained_by_relab else ()
    rows = max((np.asarray(column.steps) for column in columns), key=len, default=np.zeros(0))
    return int(np.diff(rows).max(initial=0))


def same_group(a: View, b: View) -> bool:
    return a is not b and identity.same((a.history, a.name), (b.history, b.name))


def same_task(a: View, b: View) -> bool:
    """The same environment and algorithm, with the same evaluation deciding."""
    return task(a) == task(b) and None not in task(a)[:2]


def task(view: View) -> tuple[Any, ...]:
    return view.config.get("env.name"), view.config.get("algo.name"), view.by, view.spec.get("horizon")


def has_values(view: View, changes: Mapping[str, Any]) -> bool:
    return all(key in view.config and not diff({"x": view.config[key]}, {"x": to}) for key, (_, to) in changes.items())


def unlike(other: View, view: View, changes: Mapping[str, Any]) -> set[str]:
    """Settings in which another run differs from this one, besides those that would change and the quiet ones."""
    changed = diff(view.history.config, other.history.config)
    return {c.key for c in changed if c.key not in changes and not c.key.startswith(QUIET)}


def longer(other: View, view: View, changes: Mapping[str, Any]) -> bool:
    """Nothing else differs but that it went on for longer: up to this run's end it says what this one would."""
    ends = [v.config.get("total_steps") for v in (other, view)]
    return unlike(other, view, changes) == {"total_steps"} and all(map(is_finite, ends)) and ends[0] > ends[1]  # type: ignore[operator]


# ---- Cost


def cost(view: View, changes: Mapping[str, Any]) -> Cost:
    """The parent's seconds per step, with the parts that the change makes longer or shorter scaled."""
    new = {key: to for key, (_, to) in changes.items()}
    steps = new.get("total_steps", view.config.get("total_steps", view.last_step))
    if type(steps) is not int or not 0 < steps < LARGEST or view.last_step <= 0:
        return Cost(None, None, "the record does not say how many steps it was to take")
    per_step = {name: seconds(view, f"time/{name}_s") for name in ("collect", "update", "log", "eval", "save")}
    if per_step["collect"] is None and per_step["update"] is None:
        whole = of_the_clock(view)
        known = whole is not None and not new.keys() & {"algo.epochs", "eval.episodes"}  # whose share it cannot tell
        if whole is not None and known:
            return Cost(steps, steps * whole, "at this run's own speed")
        return Cost(steps, None, "the record has no timing" if whole is None else "the record times no part of a step")
    per_step["update"] = (per_step["update"] or 0.0) * ratio(view, new, "algo.epochs")
    per_step["eval"] = (per_step["eval"] or 0.0) * ratio(view, new, "eval.episodes")
    return Cost(steps, STARTUP_S + steps * sum(x or 0.0 for x in per_step.values()), "at this run's own speed")


def of_the_clock(view: View) -> float | None:
    """Seconds per step of a record that has the time since its start alone, as other tools write it."""
    total, column = elapsed(view.history), view.history.columns.get(CLOCK)
    steps = float(column.steps[-1]) if column is not None and len(column.steps) else 0.0
    return total / steps if math.isfinite(total) and total > 0 and steps > 0 else None


def seconds(view: View, name: str) -> float | None:
    """Mean per step, without the first row, which may have compiled kernels."""
    try:
        curve = view.curve(name, rows=3)
    except Missing:
        return None
    done = float(curve.steps[-1] - curve.steps[0])
    rows = (len(curve) - 1) * rows_per(view, curve.steps)
    return float(curve.values[1:].mean()) * rows / done if done > 0 else None


def rows_per(view: View, steps: np.ndarray) -> float:
    """Iterations per row: a thinned record has fewer rows than there were iterations."""
    sizes = [view.config.get("algo.envs"), view.config.get("algo.steps"), view.spec.get("agents", 1)]
    whole = [x for x in sizes if isinstance(x, int) and x > 0]
    if len(whole) < 3 or not view.history.trained_by_relab or len(steps) < 2:
        return 1.0
    return max(1.0, float(np.mean(np.diff(steps))) / math.prod(whole))


def ratio(view: View, new: Mapping[str, Any], key: str) -> float:
    old = view.config.get(key)
    return new[key] / old if key in new and isinstance(old, (int, float)) and old else 1.0
