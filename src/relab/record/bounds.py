"""Which values can a metric have at all? A share lies in 0 to 1, a return between the worst and the best of every step.

Intervals and bands are cut there (relab.stats.mean_over_seeds), and a run that diverged is worth the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from relab.base.numbers import is_finite
from relab.record import glossary, levels

if TYPE_CHECKING:
    from relab.record.history import History

ANY = (-math.inf, math.inf)
Bounds = tuple[float, float]


def bounds_of(history: History, metric: str) -> Bounds:
    """The lowest and highest value of a metric in this run; infinite where nothing is known."""
    return of_metric(history.meta.get("spec"), metric)


def of_metric(spec: Any, metric: str) -> Bounds:
    """The same by what a record says of its environment (`spec` of its meta.json)."""
    known = glossary.METRICS.get(metric)
    if "success" in metric:
        return 0.0, 1.0
    if known is None or known.unit != "return":
        return (known.low, known.high) if known is not None else ANY
    if metric not in glossary.RETURNS:  # a spread of returns is no return
        return known.low, known.high
    return of_spec(spec if isinstance(spec, Mapping) else {})


def of_outcome(history: History, metric: str) -> Bounds:
    """Of the number that a run is judged by: a return under another tool's name is a return."""
    return of_metric(history.meta.get("spec"), metric if glossary.known(metric) else "eval/return_det")


def of_spec(spec: Mapping[str, Any]) -> Bounds:
    """Of the return of an episode of one step up to the horizon, by the bounds of one step's reward."""
    facts = {**levels.facts(str(spec.get("env") or "")), **{k: v for k, v in spec.items() if v is not None}}
    horizon, low, high = (_number(facts.get(key)) for key in ("horizon", "reward_low", "reward_high"))
    if horizon is None:
        return ANY
    least = -math.inf if low is None else min(low, low * horizon)
    most = math.inf if high is None else max(high, high * horizon)
    return least, most


def with_error(mean: float, error: float, bounds: Bounds, shown: Callable[[float], str]) -> str:
    """The error that stands after a mean, in two parts where the whole of it leaves what is possible.

    >>> with_error(480, 11, (0, 500), str), with_error(497, 11, (0, 500), str), with_error(500, 11, (0, 500), str)
    (' ± 11', ' +3/-11', ' +0/-11')
    >>> with_error(492.1, 7.9, (0, 500), lambda x: f"{x:.3g}")  # the room is 7.899999...
    ' ± 7.9'
    """
    if not bounds[0] <= mean <= bounds[1]:  # in other units: these bounds are not about it
        return f" ± {shown(error)}"
    up, down = (max(min(error, room), 0.0) for room in (bounds[1] - mean, mean - bounds[0]))
    return f" ± {shown(error)}" if shown(up) == shown(down) == shown(error) else f" +{shown(up)}/-{shown(down)}"


def _number(value: Any) -> float | None:
    return float(value) if is_finite(value) else None
