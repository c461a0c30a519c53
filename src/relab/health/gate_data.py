"""What schedule did a run follow, and where does its log answer to it? Settings or command, columns, checks, trials.

Schedules name metrics by a bare word and count iterations; a log may have that word in several groups and on several
axes. No bar is written here.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from relab.health.curve import Curve
from relab.health.rule import Missing
from relab.health.view import View
from relab.schedules import chance
from relab.schedules.bounds import kind
from relab.schedules.command import flags_of, from_flags, words_of
from relab.schedules.gate import Decision, Gate, ScheduleError, replay
from relab.schedules.schedule import Schedule, from_mapping

ITERATIONS = ("iteration", "iterations")


def schedule_of(view: View) -> Schedule:
    """What the settings or the command declare; empty where they declare nothing."""
    settings = view.history.config.get("schedule")
    if isinstance(settings, Mapping) and settings:
        try:
            return from_mapping(settings)
        except ScheduleError as error:
            raise Missing(f"a schedule that can be read: {error}") from None
    schedule = _parsed(_command(view), _foreign(view))
    if schedule.problems and not schedule:
        raise Missing(f"a schedule that can be read: {schedule.problems[0]}")
    return schedule


def _command(view: View) -> str:
    command = view.meta.get("command")
    if isinstance(command, list | tuple):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""


def _foreign(view: View) -> tuple[tuple[str, str], ...]:
    """Settings of a foreign program by their bare names, for logs that keep arguments instead of a command."""
    settings = view.history.config.get("foreign")
    rows = settings.items() if isinstance(settings, Mapping) else ()
    return tuple(
        (str(key).replace("-", "_"), str(value)) for key, value in rows if isinstance(value, str | int | float)
    )


@functools.lru_cache(maxsize=64)
def _parsed(command: str, foreign: tuple[tuple[str, str], ...]) -> Schedule:
    return from_flags({**dict(foreign), **flags_of(words_of(command))})


def column_name(view: View, metric: str, steps: list[int] | None = None) -> str | None:
    """The column that a schedule calls `metric`: schedules count iterations, and are checked at the steps given."""
    tool = {ours for theirs, ours in view.history.mapping.items() if _last(theirs) == metric}
    names = [name for name in view.history.columns if name == metric or name in tool or _last(name) == metric]
    wanted = set(steps or ())

    def fit(name: str) -> tuple[bool, int, int, bool]:
        have, values = set(view.history.columns[name].steps.tolist()), view.history.columns[name].values
        coarse = bool((values == values.astype(np.float32)).all())  # a log of half the digits says less
        return axis_of(view, name) not in ITERATIONS, -len(wanted & have), len(have - wanted) * bool(wanted), coarse

    return min(names, key=fit, default=None)


def _last(name: str) -> str:
    return re.split(r"[/.]", name)[-1]


def curve_of(view: View, metric: str, steps: list[int] | None = None) -> Curve:
    name = column_name(view, metric, steps)
    if name is None:
        raise Missing(metric)
    return view.curve(name)


def axis_of(view: View, name: str) -> str:
    return view.history.axes.get(name, "agent_steps")


def checks_of(view: View, gate: Gate | None = None) -> list[tuple[int, str]]:
    """(step, outcome) of each decision in the events; of a check that a resumed run made again, the last."""
    outcomes: dict[tuple[int, str], str] = {}
    for event in gate_events(view, gate):
        inner = event.get("event")
        row = inner if isinstance(inner, Mapping) else event
        words = [row.get(key) for key in ("outcome", "decision", "event", "result")]
        said = next((w for w in words if isinstance(w, str)), "unknown")
        outcomes[step_of(event), str(event.get("gate", ""))] = said
    return [(step, outcome) for (step, _), outcome in outcomes.items()]


def gate_events(view: View, gate: Gate | None = None) -> list[Mapping[str, Any]]:
    return [event for event in view.history.events if event.get("kind") == "gate" and _is_of(event, gate)]


def step_of(event: Mapping[str, Any]) -> int:
    step = event.get("step", event.get("iteration"))
    return step if type(step) is int else 0


def iterations_of(view: View, gate: Gate | None = None) -> dict[int, int]:
    """step -> iteration of the checks that say both: freezes count iterations."""
    events = [event for event in gate_events(view, gate) if type(event.get("iteration")) is int]
    return {step_of(event): int(event["iteration"]) for event in events}


def _is_of(event: Mapping[str, Any], gate: Gate | None) -> bool:
    name = event.get("gate", event.get("name"))
    return gate is None or not isinstance(name, str) or name == gate.name


def replayed(view: View, gate: Gate) -> list[Decision]:
    """The gate's decisions on the logged values; Missing where a metric is not logged."""
    steps = [step for step, _ in checks_of(view, gate)]
    curves = {metric: curve_of(view, metric, steps) for metric in gate.metrics}
    common = set.intersection(*(set(curve.steps.tolist()) for curve in curves.values()))
    at = sorted(common & set(steps) if steps else common)
    rows = {metric: dict(zip(curve.steps.tolist(), curve.values.tolist())) for metric, curve in curves.items()}
    iteration = iterations_of(view, gate)
    counted = [iteration.get(step, step) for step in at] if iteration else at
    decisions = replay(gate, counted, {metric: [row[step] for step in at] for metric, row in rows.items()})
    return [replace(decision, at=step) for decision, step in zip(decisions, at)]


def trials_of(view: View, schedule: Schedule) -> int | None:
    """Trials behind the rates of an evaluation: a count over its ratio, else what the rates give away, else a claim."""
    steps = [step for step, _ in checks_of(view)]
    for gate in schedule.gates:
        for condition in gate.success:
            if condition.metric.endswith("_count") and (trials := _paired(view, condition.metric, steps)):
                return trials
    implied = chance.common_trials([rate for curve in rates(view, schedule) for rate in curve.values])
    return implied if implied and implied > 1 else schedule.claims[0].n if schedule.claims else None


def _paired(view: View, metric: str, steps: list[int]) -> int | None:
    """n = count / ratio, where every row agrees."""
    for end in ("_ratio", "_rate", "_fraction", "_share"):
        count, share = (column_name(view, each, steps) for each in (metric, metric.removesuffix("_count") + end))
        if count and share:
            a, b = view.curve(count), view.curve(share)
            _, i, j = np.intersect1d(a.steps, b.steps, return_indices=True)
            ratio = (a.values[i] / b.values[j])[b.values[j] > 0]
            if len(ratio) and np.ptp(ratio) < 1e-3 * ratio[0] and abs(ratio[0] - round(ratio[0])) < 0.01:
                return round(float(ratio[0]))
    return None


def rates(view: View, schedule: Schedule) -> list[Curve]:
    """The shares that the gates look at, at the steps of their checks."""
    steps = [step for step, _ in checks_of(view)]
    shares = [c for g in schedule.gates for c in (*g.success, *g.failure) if kind(c) in ("share", "below")]
    names = {c.metric: column_name(view, c.metric, steps) for c in shares}
    curves = [view.curve(name) for name in names.values() if name]
    return [at_steps(curve, steps) for curve in curves]


def at_steps(curve: Curve, steps: list[int]) -> Curve:
    keep = np.isin(curve.steps, steps) if steps else np.ones(len(curve), bool)
    return Curve(curve.name, curve.steps[keep], curve.values[keep]) if keep.any() else curve
