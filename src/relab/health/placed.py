"""Where does a run lie among healthy ones, metric by metric? The lines that `relab explain METRIC [RUN]` prints."""

from __future__ import annotations

import numpy as np

from relab.base.text import number
from relab.health import reference
from relab.health.features import CHOSEN, METRICS, UNIT_FREE, Key, features, in_own_units
from relab.health.usual import usual_values
from relab.health.view import View
from relab.record import glossary

SHOWN = {  # feature -> how it is called
    "first": "first third (median)",
    "middle": "middle third (median)",
    "last": "last third (median)",
    "peak": "highest level (median of five rows in a row)",
    "growth": "growth from the first third to the last (sizes: in powers of ten)",
}
RETURNS = ("return", "return²")  # units that are given in sizes of the run's own returns


def healthy_lines(metric: str) -> list[str]:
    """What healthy runs of each algorithm show of a metric; empty where the table has nothing of it."""
    if metric not in METRICS:
        return []
    lines = [line for algo in reference.ALGOS for line in _of_algo(algo, metric)]
    unit = f" (in the size of a run's returns{'²' * glossary.metric(metric).unit.endswith('²')})" * _by_returns(metric)
    return [f"Healthy runs{unit}:", *lines] if lines else []


def _by_returns(metric: str) -> bool:
    return metric == "policy/actor_loss" or glossary.metric(metric).unit in RETURNS


def _of_algo(algo: str, metric: str) -> list[str]:
    known = {feature: reference.interval(algo, None, Key(metric, feature)) for feature in ("first", "last")}
    first, last = known["first"], known["last"]
    if first is None or last is None:
        return []
    return [f"  {algo.upper()}: {_span(first)} in the first third, {_span(last)} in the last"
            f" (nine of ten of {last.runs} runs, {last.cells} kinds)"]  # fmt: skip


def _span(healthy: reference.Healthy) -> str:
    return f"{number(healthy.low)} to {number(healthy.high)}"


def run_lines(view: View, metric: str) -> list[str]:
    """Where this run's value lies among healthy runs of its algorithm, feature by feature."""
    if view.algo not in reference.ALGOS:
        return [f"{view.name}: no healthy runs of {view.algo or 'an unknown algorithm'} to hold it against"]
    if metric in CHOSEN:
        return [*own_lines(view, metric)[:1], *_others_chose(view, metric)]
    numbers = features(view.history, view.until)
    lines = [line for feature in SHOWN if (line := _placed(view, Key(metric, feature), numbers))]
    kind = f" with {view.kind} actions" if view.kind else ""
    head = f"{view.name}, among healthy {view.algo.upper()} runs{kind}:"
    return [head, *lines, *_highest(view, metric)] if lines else [f"{view.name} does not log {metric} in enough rows"]


def _others_chose(view: View, metric: str) -> list[str]:
    """What healthy runs of the table were set to, and what the library begins with: both are good to begin with."""
    healthy = reference.interval(str(view.algo), view.kind, Key(metric, "first"))
    runs = f"healthy {str(view.algo).upper()} runs had {_span(healthy)} ({healthy.cells} kinds)" if healthy else ""
    word = metric.rpartition("/")[2]
    usual = [f"{values[key]:g} is {whose}" for whose, values in usual_values(view)
             for key in values if key.rpartition(".")[2] == word]  # fmt: skip
    said = "; ".join(filter(None, [runs, *usual]))
    return [f"It is chosen, not measured: {said}."] if said else []


def own_lines(view: View, metric: str) -> list[str]:
    """What the run has of a metric that the table of healthy runs does not hold: first, last and best, with steps."""
    curve = view.curve(metric, rows=0)
    good = [i for i, value in enumerate(curve.values) if np.isfinite(value)]
    if not good:
        return [f"{view.name} logs {metric}, but no finite value of it"]
    known = glossary.METRICS.get(metric)
    sign = known.direction if known is not None else 0
    places = {"first": good[0], "last": good[-1]}
    if sign:
        places["best"] = max(good, key=lambda i: sign * curve.values[i])
    else:
        places |= {
            "lowest": min(good, key=curve.values.__getitem__),
            "highest": max(good, key=curve.values.__getitem__),
        }
    said = [f"{name} {number(float(curve.values[i]))} at step {int(curve.steps[i]):,}" for name, i in places.items()]
    return [f"{view.name}, {len(curve)} rows: {', '.join(said)}",
            f"No healthy range of {metric} is known: it depends on the task."]  # fmt: skip


def _highest(view: View, metric: str) -> list[str]:
    """The largest single value: a level of several rows does not show what one update did."""
    if not view.has(metric) or not len(curve := view.curve(metric, rows=0)):
        return []
    at = int(curve.values.argmax())
    return [f"  highest single value: {number(float(curve.values[at]))} at step {int(curve.steps[at]):,}"]


def _placed(view: View, key: Key, numbers: dict[Key, float]) -> str:
    healthy = reference.interval(str(view.algo), view.kind, key)
    tail = reference.tail_probability(str(view.algo), view.kind, key, numbers[key]) if key in numbers else None
    if healthy is None or tail is None:
        return ""
    own = in_own_units(view.history, key, numbers[key])
    span = healthy if key.feature in UNIT_FREE else healthy.times(in_own_units(view.history, key, 1.0))
    inside = "inside" if span.low <= own <= span.high else "outside"
    far = f"at most {tail:.0%} of healthy runs lie as far from the middle"
    return f"  {SHOWN[key.feature]}: {number(own)}, {inside} of {_span(span)}; {far}"
