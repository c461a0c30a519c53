"""Can this schedule work at all? Bars that contradict, imply or stand under each other, told before a run is spent.

lint(schedule) needs no data. What a log adds (the trials behind a count, a floor that the resets set) is handed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

from relab.schedules.alert import Alert
from relab.schedules.bounds import Bound, bound, conflict, implies, impossible, in_words, kind, opposite
from relab.schedules.chance import binomial_up_to, undecided
from relab.schedules.gate import Condition, Gate
from relab.schedules.schedule import Schedule
from relab.schedules.stage import Plan


@dataclass(frozen=True)
class Lint:
    """One thing that cannot work, or works otherwise than it reads."""

    slug: str
    owner: str  # the gate, plan or alert
    message: str
    exact: bool = True  # False: holds but for bars that look at different windows
    blocks: bool = False  # True: it can never open, fire or be reached
    conditions: tuple[Condition, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    note: str = ""  # what limits it


def lint(schedule: Schedule, n: int | None = None) -> list[Lint]:
    """All findings; `n` is the number of trials behind counts and shares where conditions do not say it themselves."""
    lints: list[Lint] = []
    for gate in schedule.gates:
        lints += [*contradictions(gate, n), *misordered(gate, n), *redundant(gate, n), *under_floor(gate, n)]
        lints += idle_freeze(gate, schedule.every)
    lints += claims_apart(schedule)
    lints += units(schedule, n)
    for alert in schedule.alerts:
        lints += [*unreachable(alert, schedule.total), *too_late(alert, schedule)]
    for plan in schedule.plans:
        lints += overrun(plan, schedule.total)
    return lints


# ---- Gates


def keeps(gate: Gate, n: int | None) -> list[Bound]:
    """What must hold for no failure; nothing where success is asked first."""
    return [bound(opposite(condition), n) for condition in gate.failure] if gate.first == "failure" else []


def contradictions(gate: Gate, n: int | None = None) -> Iterator[Lint]:
    """No value meets all of success without failing."""
    bounds = [bound(condition, n) for condition in gate.success]
    for each in bounds:
        if impossible(each):
            yield Lint("gate-contradiction", gate.name, f"{each.condition} asks for a share outside of 0 to 1",
                       blocks=True, conditions=(each.condition,))  # fmt: skip
    kept = keeps(gate, n)
    for a, b in [*combinations(bounds, 2), *((a, b) for a in bounds for b in kept)]:
        if conflict(a, b):
            exact = a.over == b.over
            other = f"not failing asks {b.condition}" if b in kept else f"success also asks {b.condition}"
            yield Lint("gate-contradiction", gate.name, f"success asks {a.condition}, but {other}: no value has both",
                       exact, exact, (a.condition, b.condition))  # fmt: skip


def misordered(gate: Gate, n: int | None = None) -> Iterator[Lint]:
    """A success bar that every value above the failure bar has passed already."""
    for condition in gate.success:
        a = bound(condition, n)
        for failing, b in zip(gate.failure, keeps(gate, n)):
            if implies(b, a) and not implies(a, b):
                message = f"bars out of order: success asks {condition}, failure is {failing}"
                yield Lint("gate-contradiction", gate.name, message, a.over == b.over, False, (condition, failing),
                           note=_windows(a, b))  # fmt: skip


def redundant(gate: Gate, n: int | None = None) -> Iterator[Lint]:
    """Success bars that another success bar implies: the tighter one alone decides."""
    bounds = [bound(condition, n) for condition in gate.success]
    for i, b in enumerate(bounds):
        makers = [a for j, a in enumerate(bounds) if j != i and implies(a, b) and not (implies(b, a) and j > i)]
        makers = [
            a for a in makers if a.condition.metric != b.condition.metric or a.over == b.over
        ]  # smoothing is meant
        if makers:
            a = min(makers, key=lambda a: (a.over != b.over, abs(a.condition.window - b.condition.window)))
            yield _implied(gate, a, b)


def _implied(gate: Gate, a: Bound, b: Bound) -> Lint:
    means = f"{a.condition} means {in_words(a, b.condition)}"
    if kind(a.condition) == "count" and a.level:
        bar = a.condition.threshold
        means = f"{a.condition} of {bar / a.level:.0f} is {a.level:.4f}"
    return Lint("redundant-threshold", gate.name, f"{b.condition} adds nothing: {means}",
                a.over == b.over, False, (b.condition, a.condition), note=_windows(a, b))  # fmt: skip


def _windows(a: Bound, b: Bound) -> str:
    if a.over == b.over:
        return ""
    windows = ["the newest value" if each == ("last", 1) else f"{each[0]}({each[1]})" for each in (a.over, b.over)]
    return f"value by value; the windows differ, {windows[0]} and {windows[1]}"


def under_floor(gate: Gate, n: int | None = None) -> Iterator[Lint]:
    """Bars below what is expected under any policy, where the condition says so."""
    for condition in gate.success:
        trials = condition.n or n
        if condition.floor is None or not trials or not condition.asks_low:
            continue
        is_count = kind(condition) == "count"
        expected = condition.floor if is_count else condition.floor * trials
        bar = condition.threshold if is_count else condition.threshold * trials
        if bar < expected:
            yield floor_lint(gate, condition, expected, trials, bar)


def floor_lint(gate: Gate, condition: Condition, expected: float, n: int, bar: float, exact: bool = True) -> Lint:
    """How likely luck alone gets under a bar that lies below the floor, once and as often as the gate asks."""
    once = binomial_up_to(int(bar + 1e-9), n, expected / n)
    row = once**gate.required
    times = f", {row:.2g} for the {gate.required} in a row" if gate.required > 1 else ""
    share = "" if kind(condition) == "count" else f" ({bar:.4g} of {n:,})"
    message = f"{condition}{share}, but {expected:.3g} of {n:,} are expected: P = {once:.2g} a check{times}"
    return Lint("bar-under-floor", gate.name, message, exact, False, (condition,),
                {"expected": expected, "bar": bar, "n": n, "once": once, "in_a_row": row})  # fmt: skip


def idle_freeze(gate: Gate, every: int | None) -> Iterator[Lint]:
    """A freeze that is over before the next check: it holds nothing back."""
    for name, length in (("freeze", gate.freeze), ("success_freeze", gate.success_freeze)):
        if every is not None and 0 < length <= every:
            message = f"{name} of {length} iterations ends before the next check, {every} later: it holds nothing back"
            yield Lint("freeze-without-effect", gate.name, message, numbers={name: length, "every": every})


# ---- Units


def units(schedule: Schedule, n: int | None = None) -> Iterator[Lint]:
    """A count whose bar is a share, or a share whose bar is a count: it holds always, never, or for none at all."""
    bars = [(gate.name, c) for gate in schedule.gates for c in (*gate.success, *gate.failure)]
    for owner, condition in [*bars, *((alert.name, alert.when) for alert in schedule.alerts)]:
        trials, bar = condition.n or n, condition.threshold
        if is_count(condition) and 0 < bar < 1:
            meant = f"; as a share of {trials:,} it would be {bar * trials:.3g}" if trials else ""
            message = f"{condition} counts, and no count lies between 0 and 1: the bar reads like a share{meant}"
        elif is_share(condition) and bar >= 2:
            always = "always" if condition.asks_low else "never"
            meant = f"; as a count out of {trials:,} it would be {bar / trials:.4g}" if trials else ""
            message = f"{condition} is a share of 0 to 1, so that it {always} holds: the bar reads like a count{meant}"
        else:
            continue
        yield Lint("count-read-as-share", owner, message, True, False, (condition,), {"bar": bar})


def is_count(condition: Condition) -> bool:
    return condition.metric.endswith("_count")


def is_share(condition: Condition) -> bool:
    word = condition.metric.rpartition("/")[2]
    return word.endswith(("_share", "_ratio", "_fraction", "_final", "_rate")) or kind(condition) == "below"


# ---- Samples


def samples(schedule: Schedule, n: int | None = None) -> list[Lint]:
    """What the trials of a check can tell at best; no fault, so lint() does not say it."""
    return [each for gate in schedule.gates for each in _too_few(gate, schedule, n)]


def _too_few(gate: Gate, schedule: Schedule, n: int | None) -> Iterator[Lint]:
    """How near to its bars the trials of a check do not decide, if they were independent: at best, that is."""
    trials = n or (schedule.claims[0].n if schedule.claims else None)
    shares = [c for c in gate.success if kind(c) in ("share", "below", "count") and c.statistic == "last"]
    zones = {c: blind_zone(c, m) for c in shares if (m := c.n or trials)}
    zones = {c: zone for c, zone in zones.items() if zone is not None}
    if zones and trials:
        margins = ", ".join(f"±{zone:.2g} of {c}" for c, zone in zones.items() if zone is not None)
        message = f"{trials:,} trials, were they independent, do not decide within {margins}"
        more = "; at that distance twice as many do in four of five cases"
        yield Lint("sample-size", gate.name, message + more, True, False, tuple(zones),
                   {"n": trials}, "agents of one episode are alike: they count less")  # fmt: skip


def blind_zone(condition: Condition, n: int) -> float | None:
    """The distance from a bar, in its unit, within which n independent trials do not decide."""
    scale = n if kind(condition) == "count" else 1
    bar = condition.threshold / scale
    return undecided(bar, n) * scale if 0 < bar < 1 else None


def claims_apart(schedule: Schedule) -> Iterator[Lint]:
    """Two settings that both say how many episodes an evaluation has."""
    first = schedule.claims[0] if schedule.claims else None
    for other in schedule.claims[1:]:
        if schedule.gates and first is not None and other.episodes != first.episodes:
            agents = first.agents or other.agents or 1
            message = f"{first.source} says {first.episodes} episodes ({first.episodes * agents:,} trials)"
            message += f", {other.source} {other.episodes} ({other.episodes * agents:,}): which does the gate see?"
            yield Lint("sample-size-unclear", schedule.gates[0].name, message, False,
                       numbers={"first": first.episodes, "other": other.episodes})  # fmt: skip


# ---- Alerts and stages


def too_late(alert: Alert, schedule: Schedule) -> Iterator[Lint]:
    """An alert on what is left of a queue that moves too slowly: episodes that are cut late use few starts."""
    queue = next((q for q in schedule.queues if q.left and q.left == alert.when.metric), None)
    if queue is None or not (queue.force_reset and schedule.steps and schedule.total) or not alert.when.asks_low:
        return
    every = queue.force_reset / schedule.steps  # iterations between two starts of a world
    first = math.ceil(((1 - alert.when.threshold) * queue.length - 1) * every)
    last = first + alert.wait
    if last <= schedule.total or unreached(alert, schedule.total):
        return
    pace = f"where episodes last their {queue.force_reset} steps (a start every {every:.3g} iterations)"
    message = f"{alert.when} holds at about iteration {first} {pace}, and must hold {alert.patience} checks"
    numbers: dict[str, float] = {"need": last, "total": schedule.total, "first": first}
    yield Lint("alert-unreachable", alert.name, f"{message}: {last} > {schedule.total}", False, False, (alert.when,),
               numbers, "episodes that end sooner bring it forward")  # fmt: skip


def unreached(alert: Alert, total: int) -> bool:
    return alert.patience * alert.cadence > total


def unreachable(alert: Alert, total: int | None) -> Iterator[Lint]:
    """Patience that is longer than the run."""
    need = alert.patience * alert.cadence
    if total is not None and unreached(alert, total):
        message = (
            f"{alert.when} must hold {alert.patience} checks, one every {alert.cadence}: {need} > {total} iterations"
        )
        yield Lint("alert-unreachable", alert.name, message, True, True, (alert.when,), {"need": need, "total": total})


def overrun(plan: Plan, total: int | None) -> Iterator[Lint]:
    """Stages that add up to more than the run has."""
    if total is None or plan.length <= total:
        return
    late = [k + 1 for k, start in enumerate(plan.starts) if start >= total]
    never = f": stage{'s' * (len(late) > 1)} {_span(late)} of {len(plan.stages)} cannot start" if late else ""
    message = f"{plan.name} adds up to {plan.length} iterations, the run has {total}{never}"
    yield Lint("schedule-overrun", plan.name, message, True, bool(late), (),
               {"length": plan.length, "total": total, "first_late": late[0] if late else 0})  # fmt: skip


def _span(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
