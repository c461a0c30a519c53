"""Can the run move on? Gates of a schedule, held against each other and against the log.

The schedule comes from the run's settings (`schedule`) or from its command line; no bar is written here. A run without
a gate is not spoken of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from relab.health.curve import Curve
from relab.health.gate_data import (
    ITERATIONS,
    at_steps,
    axis_of,
    checks_of,
    column_name,
    curve_of,
    replayed,
    schedule_of,
    trials_of,
)
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View
from relab.schedules import chance
from relab.schedules.bounds import kind
from relab.schedules.gate import Condition, Decision, Gate, Tally, tally
from relab.schedules.lint import Lint, floor_lint, lint
from relab.schedules.schedule import Schedule

PASSED = ("advance", "advanced", "progress", "success_progress", "success", "pass", "passed", "open", "opened")
SHARES = ("count", "share", "below")


def linted(view: View, schedule: Schedule, slug: str) -> list[Lint]:
    n = trials_of(view, schedule) if schedule.gates else None
    return [each for each in lint(schedule, n) if each.slug == slug]


def joined(lints: list[Lint]) -> str:
    return "; ".join(each.message for each in lints)


def bars(lints: list[Lint]) -> list[Evidence]:
    """Each finding's bars, with where they were read and what limits it."""
    rows = []
    for each in lints:
        origin = ", ".join(dict.fromkeys(c.source for c in each.conditions if c.source))
        formula = "; ".join(part for part in (f"from {origin}" if origin else "", each.note) if part)
        rows.append(Evidence(each.conditions[0].metric, [], [c.threshold for c in each.conditions], formula))
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
    lints = sorted(linted(view, schedule, "gate-contradiction"), key=lambda each: not each.blocks)
    if not lints:
        return None
    blocks = lints[0].blocks
    head = f"{lints[0].owner}: " if blocks else f"{lints[0].owner} can open, but has "
    severity = "error" if blocks else "warning"
    return Finding(head + joined(lints), float(len(lints)), None, bars(lints), severity=severity, confidence="high")


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
    lints = linted(view, schedule, "redundant-threshold")
    if not lints:
        return None
    message = f"{lints[0].owner}: {joined(lints)}"
    severity = "warning" if any(each.exact for each in lints) else "info"
    return Finding(message, float(len(lints)), None, bars(lints), severity=severity, confidence="high")


@rule("bar-under-floor", about="operation", algos=(), explains=("gate-never-advances",))
def bar_under_floor(
    view: View, *, evaluations: int = 5, constant_p: float = 0.05, fall_errors: float = 1.0
) -> Finding | None:
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
    lints = linted(view, schedule, "bar-under-floor")
    if lints:
        return Finding(f"{lints[0].owner}: {joined(lints)}", lints[0].numbers["expected"], None, bars(lints),
                       severity="warning", confidence="high")  # fmt: skip
    limits = (evaluations, constant_p, fall_errors)
    floors = [each for gate in schedule.gates for each in _floors(view, schedule, gate, *limits)]
    return min(floors, key=lambda each: each[0], default=(0.0, None))[1]


def _floors(
    view: View, schedule: Schedule, gate: Gate, evaluations: int, constant_p: float, fall_errors: float
) -> Iterator[tuple[float, Finding]]:
    """(chance of luck, finding) of each bar under an estimated floor."""
    steps, n = [step for step, _ in checks_of(view, gate)], trials_of(view, schedule)
    bars = [c for c in gate.success if kind(c) in SHARES and c.asks_low and c.window == 1]
    for condition in bars:
        curve = at_steps(curve_of(view, condition.metric, steps), steps)
        trials = condition.n or n
        if trials is None:
            raise Missing(f"the number of trials behind {condition.metric}")
        same = _constant(condition, curve, trials) if len(curve) >= evaluations else None
        # a count that seems to fall may not have come to its floor yet
        if same is None or same.p <= constant_p or same.trend < -fall_errors:
            continue
        moving = _moving(view, curve, trials)
        if moving is not None:
            yield _floor(view, gate, condition, curve, trials, same, moving)


def _constant(
    condition: Condition, curve: Curve, n: int, least: float = 5, rare: float = 0.05
) -> chance.Constancy | None:
    """How constant a count above its bar is; None where it is too small, or its bar can be met."""
    scale = _scale(condition, n)
    counts = (curve.values * scale).tolist()
    if not least <= np.mean(counts) < n or condition.threshold * scale >= np.mean(counts):
        return None
    return chance.constancy(counts, [n] * len(counts), rare=np.mean(counts) < rare * n)


def _scale(condition: Condition, n: int) -> int:
    """What makes a count of a value."""
    return 1 if kind(condition) == "count" else n


def _floor(
    view: View, gate: Gate, condition: Condition, curve: Curve, n: int, same: chance.Constancy,
    moved: tuple[Curve, float], luck: float = 0.05, surely_p: float = 0.2,
) -> tuple[float, Finding]:  # fmt: skip
    problem = floor_lint(gate, condition, same.expected, n, condition.threshold * _scale(condition, n), exact=False)
    sure = "high" if problem.numbers["in_a_row"] < luck and same.p > surely_p else "medium"
    test = f"constant, chi2 = {same.chi2:.2f}, df {same.df}, p = {same.p:.2f}; trend {same.trend:+.1f} standard errors"
    other = Evidence(moved[0].name, moved[0].steps.tolist(), moved[0].values.tolist(),
                     f"changes meanwhile: p = {moved[1]:.1g}")  # fmt: skip
    shown = Evidence(curve.name, curve.steps.tolist(), curve.values.tolist(), test)
    return problem.numbers["once"], Finding(f"{gate.name}: {problem.message}", same.expected, int(curve.steps[0]),
                                         [shown, other], confidence=sure, axis=axis_of(view, curve.name))  # fmt: skip


def _moving(view: View, like: Curve, n: int, surely: float = 0.01) -> tuple[Curve, float] | None:
    """A share of the same trials that changes clearly, Bonferroni over those there are: the policy did change."""
    shares = []
    for name, column in view.history.columns.items():
        keep = np.isin(column.steps, like.steps)
        curve = Curve(name, column.steps[keep], column.values[keep])
        same_rows = name != like.name and np.array_equal(curve.steps, like.steps)
        if same_rows and 0 < curve.values.mean() < 1 and chance.common_trials(curve.values.tolist()) == n:
            shares.append((curve, chance.constancy((curve.values * n).tolist(), [n] * len(curve)).p))
    best = min(shares, key=lambda each: each[1], default=None)
    return best if best and best[1] * len(shares) < surely else None


# ---- Rules about what the gate did


@rule("gate-never-advances", about="operation", algos=(), severity="warning")
def gate_never_advances(view: View, *, least: int = 3) -> Finding | None:
    """
    What: none of three or more checks of a gate passed; a remark while the run goes on, for it may still open.
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
        if len(checks) >= least and not any(outcome in PASSED for _, outcome in checks):
            finding = _shut(view, schedule, gate, checks, decisions)
            finding.severity = "info" if view.unfinished else None
            return finding
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
    wanted = sorted(tally(decisions), key=lambda row: (row.met / max(row.looks, 1), row.condition.window))
    hardest = next((row for row in wanted if row.looks), None)
    failing = max((row for row in kept if row.met), key=lambda row: row.met, default=None)
    reasons = f"; {failing.condition} in {failing.met} of {failing.looks}" if failing else ""
    reasons += f"; {hardest.condition} met in {hardest.met} of {hardest.looks}" if hardest else ""
    n = trials_of(view, schedule) if schedule.gates else None
    return Finding(f"{name}: none of {len(checks)} checks passed ({outcomes}){reasons}", 0.0, checks[0][0],
                   [*(_distance(view, row, "met", n) for row in wanted if row.looks),
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
    formula = f"replay of the gate on the log agrees in {sum(both)} of {len(both)} checks"
    return [Evidence("gate", [d.at for d in decisions], [float(d.passed) for d in decisions], formula)] if both else []


def _axis(view: View, gate: Gate | None) -> str:
    steps = [step for step, _ in checks_of(view, gate)]
    name = column_name(view, gate.metrics[0], steps) if gate and gate.metrics else None
    return axis_of(view, name) if name else ITERATIONS[0]
