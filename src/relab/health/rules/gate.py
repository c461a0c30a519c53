"""Can the run move on? Gates, alerts and stages of a schedule, held against each other and against the log (group F).

The schedule comes from the run's settings (`schedule`) or from its command line; no bar is written here. A run without
a gate, stage or alert is not spoken of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from relab.health.curve import Curve
from relab.health.gate_data import (
    ITERATIONS,
    at_steps,
    axis_of,
    checks_of,
    column_name,
    curve_of,
    rates,
    replayed,
    schedule_of,
    trials_of,
)
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View
from relab.schedules import chance
from relab.schedules.alert import Alert
from relab.schedules.bounds import kind
from relab.schedules.gate import Condition, Decision, Gate, Tally, tally
from relab.schedules.lint import Lint, floor_lint, lint
from relab.schedules.schedule import Claim, Schedule
from relab.schedules.stage import Plan

PASSED = ("advance", "advanced", "progress", "success_progress", "success", "pass", "passed", "open", "opened")
CHECKS = 3  # fewer checks of a gate say nothing about it
FEW = 5  # evaluations below which constancy means little
FALLING = -1.0  # standard errors: a count that seems to fall may not have come to its floor yet
SHARES = ("count", "share", "below")


def linted(view: View, schedule: Schedule, slug: str) -> list[Lint]:
    n = trials_of(view, schedule) if schedule.gates else None
    return [each for each in lint(schedule, n) if each.slug == slug]


def joined(found: list[Lint]) -> str:
    return "; ".join(each.message for each in found)


def bars(found: list[Lint]) -> list[Evidence]:
    """Each finding's bars, with where they were read and what limits it."""
    rows = []
    for each in found:
        origin = ", ".join(dict.fromkeys(c.source for c in each.conditions if c.source))
        told = "; ".join(part for part in (f"from {origin}" if origin else "", each.note) if part)
        rows.append(Evidence(each.conditions[0].metric, [], [c.threshold for c in each.conditions], told))
    return rows


# ---- Rules about bars


@rule("gate-contradiction", about="operation", algos=(), severity="warning")
def gate_contradiction(view: View) -> Finding | None:
    """
    What: no value can succeed without failing (error), or a success bar is laxer than the failure bar of the same
        metric (warning).
    Why: a gate whose bars exclude each other never opens; bars out of order mislead whoever tunes them.
    Known problems: bars over different windows look at different values; an exclusion is called one only over the same.
    Refuted by: a check in the log that succeeded under these bars.
    Try: raise the success bar to the failure bar, or drop the one that another metric already decides.
    """
    schedule = schedule_of(view)
    found = sorted(linted(view, schedule, "gate-contradiction"), key=lambda each: not each.blocks)
    if not found:
        return None
    blocks = found[0].blocks
    head = f"{found[0].owner}: " if blocks else f"{found[0].owner} can open, but has "
    severity = "error" if blocks else "warning"
    return Finding(head + joined(found), float(len(found)), None, bars(found), severity=severity, confidence="high")


@rule("redundant-threshold", about="operation", algos=(), severity="warning")
def redundant_threshold(view: View) -> Finding | None:
    """
    What: a success bar is implied by another one of the same gate: P(T < t) <= q is the same as Q_q >= t, and a count
        out of n is a ratio.
    Why: it looks like a second control and is none; relaxing it changes nothing.
    Known problems: over different windows the implication holds value by value, not for every sequence of them (info).
    Refuted by: a check in which this bar alone decided.
    Try: drop the laxer bar, or state one bar per quantity.
    """
    schedule = schedule_of(view)
    found = linted(view, schedule, "redundant-threshold")
    if not found:
        return None
    message = f"{found[0].owner}: {joined(found)}"
    severity = "warning" if any(each.exact for each in found) else "info"
    return Finding(message, float(len(found)), None, bars(found), severity=severity, confidence="high")


@rule("bar-under-floor", about="operation", algos=(), explains=("gate-never-advances",))
def bar_under_floor(view: View) -> Finding | None:
    """
    What: a success bar lies below what is expected whatever the policy does: a floor given with the bar, or a count
        that stays the same over training (five or more evaluations, chi-square p > 0.05, no trend downwards by more
        than a standard error) while another rate changes.
    Why: how the environment starts sets such a count, not learning; the gate then opens by luck only.
    Known problems: a count that only this policy never improves looks the same; hence info unless the floor is given.
        Agents of one episode are alike, which makes changes look larger and constancy no smaller.
    Refuted by: a better policy with a clearly lower count at the same starts.
    Try: change how episodes start, measure the floor with a scripted policy, or put the bar above it.
    """
    schedule = schedule_of(view)
    given = linted(view, schedule, "bar-under-floor")
    if given:
        return Finding(f"{given[0].owner}: {joined(given)}", given[0].numbers["expected"], None, bars(given),
                       severity="warning", confidence="high")  # fmt: skip
    found = [each for gate in schedule.gates for each in _floors(view, schedule, gate)]
    return min(found, key=lambda each: each[0], default=(0.0, None))[1]


def _floors(view: View, schedule: Schedule, gate: Gate) -> Iterator[tuple[float, Finding]]:
    """(chance of luck, finding) of each bar under an estimated floor."""
    steps, n = [step for step, _ in checks_of(view, gate)], trials_of(view, schedule)
    bars = [c for c in gate.success if kind(c) in SHARES and c.asks_low and c.window == 1]
    for condition in bars:
        curve = at_steps(curve_of(view, condition.metric, steps), steps)
        trials = condition.n or n
        if trials is None:
            raise Missing(f"the number of trials behind {condition.metric}")
        if len(curve) >= FEW and (found := _floor(view, gate, condition, curve, trials)):
            yield found


def _floor(view: View, gate: Gate, condition: Condition, curve: Curve, n: int) -> tuple[float, Finding] | None:
    scale = 1 if kind(condition) == "count" else n
    counts = (curve.values * scale).tolist()
    if not 5 <= np.mean(counts) < n or condition.threshold * scale >= np.mean(counts):
        return None
    same = chance.constancy(counts, [n] * len(counts), rare=np.mean(counts) < 0.05 * n)
    moved = _moving(view, curve, n)
    if same.p <= 0.05 or same.trend < FALLING or moved is None:
        return None
    told = floor_lint(gate, condition, same.expected, n, condition.threshold * scale, exact=False)
    sure = "high" if told.numbers["in_a_row"] < 0.05 and same.p > 0.2 else "medium"  # close to 0.05 is no constancy
    test = f"constant, chi2 = {same.chi2:.2f}, df {same.df}, p = {same.p:.2f}; trend {same.trend:+.1f} standard errors"
    other = Evidence(moved[0].name, moved[0].steps.tolist(), moved[0].values.tolist(),
                     f"changes meanwhile: p = {moved[1]:.1g}")  # fmt: skip
    shown = Evidence(curve.name, curve.steps.tolist(), curve.values.tolist(), test)
    return told.numbers["once"], Finding(f"{gate.name}: {told.message}", same.expected, int(curve.steps[0]),
                                         [shown, other], confidence=sure, axis=axis_of(view, curve.name))  # fmt: skip


def _moving(view: View, like: Curve, n: int) -> tuple[Curve, float] | None:
    """A share of the same trials that changes clearly, Bonferroni over those there are: the policy did change."""
    found = []
    for name, column in view.history.columns.items():
        keep = np.isin(column.steps, like.steps)
        curve = Curve(name, column.steps[keep], column.values[keep])
        same_rows = name != like.name and np.array_equal(curve.steps, like.steps)
        if same_rows and 0 < curve.values.mean() < 1 and chance.common_trials(curve.values.tolist()) == n:
            found.append((curve, chance.constancy((curve.values * n).tolist(), [n] * len(curve)).p))
    best = min(found, key=lambda each: each[1], default=None)
    return best if best and best[1] * len(found) < 0.01 else None


# ---- Rules about what the gate did


@rule("gate-never-advances", about="operation", algos=(), severity="warning")
def gate_never_advances(view: View) -> Finding | None:
    """
    What: none of three or more checks of a gate passed.
    Why: what the gate guards never came on; the run trained something other than was planned.
    Known problems: a gate that rightly holds back a policy that is not good enough looks the same; the distances tell.
    Refuted by: the same bars passing in a longer run.
    Try: look at the condition furthest from its bar; replay other bars on the log before a run is spent on them.
    """
    schedule = schedule_of(view)
    gates: list[Gate | None] = [*schedule.gates] or [None]
    for gate in gates:
        checks, decisions = checks_of(view, gate), _decisions(view, gate)
        checks = checks or [(d.at, d.outcome) for d in decisions]
        if gate is not None and not checks:
            raise Missing(f"checks of {gate.name}: events of kind gate, or {', '.join(gate.metrics)}")
        if len(checks) >= CHECKS and not any(outcome in PASSED for _, outcome in checks):
            return _shut(view, schedule, gate, checks, decisions)
    return None


def _decisions(view: View, gate: Gate | None) -> list[Decision]:
    """The replay, or nothing where the log lacks a metric: the events then speak alone."""
    try:
        return [] if gate is None else replayed(view, gate)
    except Missing:
        return []


def _shut(view: View, schedule: Schedule, gate: Gate | None, checks: list[tuple[int, str]],
          decisions: list[Decision]) -> Finding:  # fmt: skip
    outcomes = ", ".join(f"{n} {word}" for word, n in Counter(outcome for _, outcome in checks).most_common())
    name = gate.name if gate else "the gate"
    kept = tally(decisions, "failure")
    asked = sorted(tally(decisions), key=lambda row: (row.met / max(row.looks, 1), row.condition.window))
    hardest = next((row for row in asked if row.looks), None)
    failing = max((row for row in kept if row.met), key=lambda row: row.met, default=None)
    told = f"; {failing.condition} in {failing.met} of {failing.looks}" if failing else ""
    told += f"; {hardest.condition} met in {hardest.met} of {hardest.looks}" if hardest else ""
    n = trials_of(view, schedule) if schedule.gates else None
    return Finding(f"{name}: none of {len(checks)} checks passed ({outcomes}){told}", 0.0, checks[0][0],
                   [*(_distance(view, row, "met", n) for row in asked if row.looks),
                    *(_distance(view, row, "failed", n) for row in kept if row.looks), *_agreement(checks, decisions)],
                   confidence="high", axis=_axis(view, gate),
                   explained_by="gate-contradiction" if _closed(schedule, gate, n) else None)  # fmt: skip


def _closed(schedule: Schedule, gate: Gate | None, n: int | None) -> bool:
    name = gate.name if gate else ""
    return any(each.blocks and each.owner == name and each.slug == "gate-contradiction" for each in lint(schedule, n))


def _distance(view: View, row: Tally, word: str, n: int | None) -> Evidence:
    """A condition over all checks: its values, the best of them, and how far that is from the bar."""
    condition, (_, gap) = row.condition, row.best(failing=word == "failed")
    formula = f"distance {gap:+.4g} at best, {condition} {word} in {row.met} of {row.looks}"
    if n and kind(condition) in ("share", "below") and 0 < condition.threshold < 1:
        blind = chance.undecided(condition.threshold, n)
        formula += f"; {n:,} independent trials do not decide within ±{blind:.2g} of the bar"
    name = column_name(view, condition.metric, row.steps) or condition.metric
    return Evidence(name, row.steps, row.values, formula)


def _agreement(checks: list[tuple[int, str]], decisions: list[Decision]) -> list[Evidence]:
    """How often the replay says what the log says."""
    log = dict(checks)
    both = [(d.outcome == log[d.at] or (d.passed and log[d.at] in PASSED)) for d in decisions if d.at in log]
    told = f"replay of the gate on the log agrees in {sum(both)} of {len(both)} checks"
    return [Evidence("gate", [d.at for d in decisions], [float(d.passed) for d in decisions], told)] if both else []


def _axis(view: View, gate: Gate | None) -> str:
    steps = [step for step, _ in checks_of(view, gate)]
    name = column_name(view, gate.metrics[0], steps) if gate and gate.metrics else None
    return axis_of(view, name) if name else ITERATIONS[0]


# ---- Rules about alerts, stages and samples


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
    found = [each for each in linted(view, schedule, "alert-unreachable") if each.blocks]  # else the log knows better
    if found:
        return Finding(f"{found[0].owner}: {joined(found)}", found[0].numbers["need"], None, bars(found),
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
    found = Finding(f"{alert.name}: {message}", float(first + need), evidence=[shown], axis=axis_of(view, name))
    if exact:
        return replace(found, onset=first, severity="warning", confidence="high")
    return replace(found, severity="info", confidence="low")


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
    found = linted(view, schedule, "schedule-overrun")
    if not found:
        return None
    plan = next(plan for plan in schedule.plans if plan.name == found[0].owner)
    reached = _reached(view, plan)
    if reached and reached[0] >= len(plan.stages):
        return None
    told = f"; the log ends in stage {reached[0]}" if reached else ""
    lengths = Evidence(
        plan.name, [], [float(stage.iterations) for stage in plan.stages], f"sum {plan.length}, run {schedule.total}"
    )
    return Finding(joined(found) + told, found[0].numbers["length"], None, [lengths, *(reached[1:] if reached else ())],
                   confidence="high")  # fmt: skip


def _reached(view: View, plan: Plan) -> tuple[int, Evidence] | None:
    """The highest stage that the log names."""
    name = column_name(view, plan.metric) if plan.metric else None
    if name is None:
        return None
    curve = view.curve(name)
    return int(curve.values.max()), curve.evidence("stage, from 1")


@rule("implied-sample-size", about="evidence", algos=(), severity="warning")
def implied_sample_size(view: View) -> Finding | None:
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
    if n is None or len(values) < 3 or all(chance.fits(v, claim.episodes) for v in values):
        return None
    luck = 0.0 if claim.n % n else (claim.n // n) ** -float(len(values))  # multiples of a coarser fraction by chance
    if luck > 0.01:
        return None
    counts = [
        Evidence(c.name, c.steps.tolist(), (c.values * n).round().tolist(), f"times {n:,}: whole numbers")
        for c in curves
    ]
    return Finding(f"rates are k/{n}, not k/{claim.n}: {_read_as(n, claim, schedule)}", float(n),
                   int(curves[0].steps[0]), counts, axis=axis_of(view, curves[0].name),
                   severity="warning" if luck < 0.001 else "info",
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
