"""Does the rest of a schedule come true? Alerts, stages and sample sizes, held against the log."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from relab.health.curve import Curve
from relab.health.gate_data import ITERATIONS, axis_of, column_name, rates, schedule_of
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.rules.gate import bars, joined, linted
from relab.health.view import View
from relab.schedules import chance
from relab.schedules.alert import Alert
from relab.schedules.schedule import Claim, Schedule
from relab.schedules.stage import Plan


@rule("alert-unreachable", about="operation", algos=(), severity="warning")
def alert_unreachable(view: View) -> Finding | None:
    """
    What: an alert cannot fire before the run ends: its patience times its cadence exceeds the run, or the quantity it
        waits for only ever goes one way and reaches the bar too late.
    Why: nobody is warned, and the silence is read as all being well.
    Known problems: where the bar was not reached yet, the date is a straight line through the log (info).
    Refuted by: the alert firing.
    Try: lower the patience, move the bar, or count the alert's checks from an earlier quantity.
    """
    schedule = schedule_of(view)
    lints = [each for each in linted(view, schedule, "alert-unreachable") if each.blocks]  # else the log knows better
    if lints:
        return Finding(f"{lints[0].owner}: {joined(lints)}", lints[0].numbers["need"], None, bars(lints),
                       confidence="high")  # fmt: skip
    for alert in schedule.alerts if schedule.total else []:
        late = _late(view, alert, schedule.total or 0)
        if late is not None:
            return late
    return None


def _late(view: View, alert: Alert, total: int) -> Finding | None:
    name = column_name(view, alert.when.metric)
    if name is None:
        raise Missing(alert.when.metric)
    if axis_of(view, name) not in ITERATIONS:
        raise Missing(f"{alert.when.metric} over iterations (it is over {axis_of(view, name)})")
    curve = view.curve(name, rows=4)
    way = np.diff(curve.values) * (-1 if alert.when.asks_low else 1)
    if (way < 0).any() or not (
        way > 0
    ).any():  # it may come back, or never comes: an alert that waits in vain is no fault
        return None
    met = curve.first(np.array([bool(alert.when.look({alert.when.metric: [v]}).met) for v in curve.values]))
    first, exact = (met, True) if met is not None else (_reaches(curve, alert.when.threshold), False)
    if first + alert.wait <= total:
        return None
    when = f"first holds at {first}" if exact else f"would hold at about {first}"
    need = alert.patience * alert.cadence
    message = f"{alert.when} {when} and must hold {alert.patience} checks: {first} + {need} > {total}"
    shown = curve.evidence(f"patience {alert.patience}, {total} iterations")
    finding = Finding(f"{alert.name}: {message}", float(first + need), evidence=[shown], axis=axis_of(view, name))
    if exact:
        return replace(finding, onset=first, severity="warning", confidence="high")
    return replace(finding, severity="info", confidence="low")


def _reaches(curve: Curve, bar: float) -> int:
    """Where a straight line through first and last value meets the bar."""
    slope = (curve.values[-1] - curve.values[0]) / (curve.steps[-1] - curve.steps[0])
    return math.ceil(curve.steps[-1] + (bar - curve.values[-1]) / slope)


@rule("schedule-overrun", about="operation", algos=(), severity="warning")
def schedule_overrun(view: View) -> Finding | None:
    """
    What: the stages of a curriculum or queue add up to more iterations than the run has.
    Why: the last stages are never reached; what they were meant to teach is not in the result.
    Known problems: a queue that is used up faster than one entry an iteration may be reached after all.
    Refuted by: the log naming the last stage.
    Try: shorten the stages in proportion, or raise the number of iterations to their sum.
    """
    schedule = schedule_of(view)
    lints = linted(view, schedule, "schedule-overrun")
    if not lints:
        return None
    plan = next(plan for plan in schedule.plans if plan.name == lints[0].owner)
    reached = _reached(view, plan)
    if reached and reached[0] >= len(plan.stages):
        return None
    ended = f"; the log ends in stage {reached[0]}" if reached else ""
    lengths = Evidence(
        plan.name, [], [float(stage.iterations) for stage in plan.stages], f"sum {plan.length}, run {schedule.total}"
    )
    return Finding(joined(lints) + ended, lints[0].numbers["length"], None,
                   [lengths, *(reached[1:] if reached else ())], confidence="high")  # fmt: skip


def _reached(view: View, plan: Plan) -> tuple[int, Evidence] | None:
    """The highest stage that the log names."""
    name = column_name(view, plan.metric) if plan.metric else None
    if name is None:
        return None
    curve = view.curve(name)
    return int(curve.values.max()), curve.evidence("stage, from 1")


@rule("implied-sample-size", about="evidence", algos=(), severity="warning")
def implied_sample_size(view: View, *, least: int = 3, by_chance: float = 0.01, warns: float = 0.001) -> Finding | None:
    """
    What: the rates of the gate's evaluations are fractions of another number of trials than the command says.
    Why: intervals, bars on counts and comparisons were made for a sample that was not drawn.
    Known problems: rates written with few digits fit any number and are left out; so are rates of single episodes. A
        few rates may be multiples of a coarser fraction by chance (info where it is above 1 in 1,000).
    Refuted by: a rate in the log that is no multiple of the smaller fraction.
    Try: evaluate with the number of episodes that is quoted, or quote the one that was used.
    """
    schedule = schedule_of(view)
    if not schedule.gates or not schedule.claims:
        return None
    claim, curves = schedule.claims[0], rates(view, schedule)
    values = sorted({float(v) for curve in curves for v in curve.values if 0 < v < 1})
    if not curves:
        raise Missing("rates of the gate's evaluations")
    n = chance.common_trials(values)
    if n is None or len(values) < least or all(chance.fits(v, claim.episodes) for v in values):
        return None
    luck = 0.0 if claim.n % n else (claim.n // n) ** -float(len(values))  # multiples of a coarser fraction by chance
    if luck > by_chance:
        return None
    counts = [
        Evidence(c.name, c.steps.tolist(), (c.values * n).round().tolist(), f"times {n:,}: whole numbers")
        for c in curves
    ]
    return Finding(f"rates are k/{n}, not k/{claim.n}: {_read_as(n, claim, schedule)}", float(n),
                   int(curves[0].steps[0]), counts, axis=axis_of(view, curves[0].name),
                   severity="warning" if luck < warns else "info",
                   confidence="medium" if _said_by(n, claim, schedule) else "high")  # fmt: skip


def _read_as(n: int, claim: Claim, schedule: Schedule) -> str:
    """What n would be in episodes, and which other flag says so."""
    if not claim.agents or n % claim.agents:
        return f"not the {claim.n:,} of {claim.source}"
    episodes = n // claim.agents
    other = _said_by(n, claim, schedule)
    says = f", as {other} says" if other else ""
    return f"{episodes} episodes of {claim.agents}{says}, where {claim.source} says {claim.episodes}"


def _said_by(n: int, claim: Claim, schedule: Schedule) -> str | None:
    return next((c.source for c in schedule.claims[1:] if replace(c, agents=claim.agents).n == n), None)
