"""May the run move on? A gate: conditions for success and failure on logged metrics, decided by a pure function.

A decision depends on the values and on the state alone, so a gate that a run used can be replayed on its log, and the
distance of each condition from its bar is known at every check.
"""

from __future__ import annotations

import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from relab.base.documents import Document

COMPARISONS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "last": lambda x: x[-1],
    "median": statistics.median,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
}
FORM = re.compile(r"\s*(?:(\w+)\(([0-9]{1,9})\)\s+)?([\w./-]+)\s*(<=|>=|<|>)\s*(\S+)\s*")
MOST = 100  # conditions of a gate; lint looks at all pairs
Values = Mapping[str, Sequence[float]]  # metric -> its values so far, the newest last


class ScheduleError(ValueError):
    """A schedule that cannot be read: what must hold, what was found."""


@dataclass(frozen=True)
class Condition:
    """One bar: a statistic over the last values of a metric against a threshold.

    `of` names what the metric is measured on. Metrics of one `of` are held against each other by their names: `..._p10`
    is its 10 % quantile, `..._100` the share below 100, `..._count` a count out of n, any other a share.
    """

    metric: str
    comparison: str
    threshold: float
    statistic: str = "last"
    window: int = 1
    of: str = ""
    n: int | None = None  # trials behind a count or share
    floor: float | None = None  # the expected value under any policy, in the metric's unit
    source: str = ""  # the flag or key it came from

    def __post_init__(self) -> None:
        if self.comparison not in COMPARISONS or self.statistic not in STATISTICS or self.window < 1:
            raise ScheduleError(
                f"a condition needs one of {', '.join(COMPARISONS)}, a statistic of {', '.join(STATISTICS)} and a"
                f" window >= 1, but got {self.comparison!r}, {self.statistic!r}, {self.window}"
            )

    def __str__(self) -> str:
        over = "" if self.window == 1 and self.statistic == "last" else f"{self.statistic}({self.window}) "
        return f"{over}{self.metric} {self.comparison} {self.threshold:g}"

    @property
    def asks_low(self) -> bool:
        return self.comparison in ("<=", "<")

    def look(self, values: Values) -> Check:
        """Hold the newest values against the bar; undecided until the window is full."""
        newest = list(values.get(self.metric, ()))[-self.window :]
        if len(newest) < self.window:
            return Check(self, None, None, None)
        value = float(STATISTICS[self.statistic](newest))
        distance = self.threshold - value if self.asks_low else value - self.threshold
        return Check(self, value, distance, bool(COMPARISONS[self.comparison](value, self.threshold)))


@dataclass(frozen=True)
class Check:
    """A condition and where the values stand: distance >= 0 is on the side it asks for."""

    condition: Condition
    value: float | None
    distance: float | None
    met: bool | None  # None: too few values

    def to_dict(self) -> Document:
        """As an event keeps it: the condition in words, and each number."""
        bar = {"condition": str(self.condition), "metric": self.condition.metric, "threshold": self.condition.threshold}
        return bar | {"value": self.value, "distance": self.distance, "met": self.met}


@dataclass(frozen=True)
class Gate:
    """All conditions of success must hold, `required` times in a row; any condition of failure sets it back."""

    name: str
    success: tuple[Condition, ...]
    failure: tuple[Condition, ...] = ()
    first: str = "failure"  # which side is asked first, where both hold
    required: int = 1  # successes in a row before it opens
    tolerance: int = 1  # failures in a row before it rolls back a stage
    freeze: int = 0  # iterations without a decision after a failure
    success_freeze: int = 0  # and after it opened
    allowance: tuple[int, ...] = ()  # how many phases each stage allows; its length is the number of stages
    sets: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key of the environment -> its value by stage

    def __post_init__(self) -> None:
        if len(self.success) + len(self.failure) > MOST:
            raise ScheduleError(f"gate {self.name} has {len(self.success) + len(self.failure)} conditions, over {MOST}")
        if self.first not in ("failure", "success") or self.required < 1 or self.tolerance < 1:
            raise ScheduleError(
                f"gate {self.name} needs first = failure or success, required >= 1 and tolerance >= 1, but got"
                f" {self.first!r}, {self.required}, {self.tolerance}"
            )

    @property
    def last(self) -> int | None:
        """The last stage, from 0; None where nothing says how many there are."""
        lengths = [len(self.allowance), *(len(values) for values in self.sets.values())]
        return max(lengths) - 1 if max(lengths) else None

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(c.metric for c in (*self.success, *self.failure)))


@dataclass(frozen=True)
class GateState:
    """What a gate remembers between two checks."""

    stage: int = 0
    successes: int = 0
    failures: int = 0
    frozen_until: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class Decision:
    """What the gate said, and how far each condition was from its bar."""

    outcome: str  # advance, success_progress, locked, frozen, failure_hold, rollback
    state: GateState
    success: tuple[Check, ...] = ()
    failure: tuple[Check, ...] = ()
    at: int = 0

    @property
    def passed(self) -> bool:
        return self.outcome in ("advance", "success_progress")

    def to_dict(self) -> Document:
        """The whole decision as plain data: an event of a run."""
        sides = {side: [check.to_dict() for check in getattr(self, side)] for side in ("success", "failure")}
        return {"iteration": self.at, "decision": self.outcome, **self.state.to_dict(), **sides}


def decide(gate: Gate, values: Values, state: GateState | None = None, at: int = 0) -> Decision:
    """One check at iteration `at`: the outcome and the state for the next one. Pure."""
    state = state or GateState()
    success = tuple(condition.look(values) for condition in gate.success)
    failure = tuple(condition.look(values) for condition in gate.failure)
    won = bool(success) and all(check.met for check in success)
    lost = any(check.met for check in failure) and not (won and gate.first == "success")
    outcome, after = _failed(gate, state, at) if lost else _not_failed(gate, state, at, won)
    return Decision(outcome, after, success, failure, at)


def _failed(gate: Gate, state: GateState, at: int) -> tuple[str, GateState]:
    failures = state.failures + 1
    if state.stage > 0 and failures >= gate.tolerance:
        return "rollback", GateState(state.stage - 1, frozen_until=at + gate.freeze)
    return "failure_hold", GateState(state.stage, 0, failures, at + gate.freeze)


def _not_failed(gate: Gate, state: GateState, at: int, won: bool) -> tuple[str, GateState]:
    if not won:
        return "locked", replace(state, successes=0, failures=0)
    if at < state.frozen_until:  # won, but too soon after the last move
        return "frozen", replace(state, failures=0)
    successes = state.successes + 1
    if successes < gate.required:
        return "success_progress", replace(state, successes=successes, failures=0)
    stage = state.stage + 1 if gate.last is None else min(state.stage + 1, gate.last)
    return "advance", GateState(stage, frozen_until=at + gate.success_freeze)


def replay(gate: Gate, steps: Sequence[int], values: Values) -> list[Decision]:
    """The gate on a log: row k of every metric belongs to steps[k]."""
    decisions: list[Decision] = []
    widest = max((c.window for c in (*gate.success, *gate.failure)), default=1)
    for k, at in enumerate(steps):
        recent = {name: column[max(0, k + 1 - widest) : k + 1] for name, column in values.items()}
        decisions.append(decide(gate, recent, decisions[-1].state if decisions else None, int(at)))
    return decisions


def parse_condition(text: str, **more: object) -> Condition:
    """`early_death_100 <= 0.1`, `median(4) p10 >= 70`.

    >>> str(parse_condition("median(4) p10>=70"))
    'median(4) p10 >= 70'
    """
    match = FORM.fullmatch(text)
    if not match:
        raise ScheduleError(f"a condition reads `[statistic(window)] metric <= number`, but got {text!r:.80}")
    statistic, window, metric, comparison, bar = match.groups()
    return Condition(metric, comparison, number(bar, text), statistic or "last", int(window or 1), **more)  # type: ignore[arg-type]


def number(text: object, where: str) -> float:
    """A finite number."""
    try:
        value = float(str(text))
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ScheduleError(f"{where:.80} needs a finite number, but got {str(text)!r:.40}")
    return value


@dataclass
class Tally:
    """How often a condition was met over many decisions."""

    condition: Condition
    looks: int = 0  # decisions in which its window was full
    met: int = 0
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def best(self, failing: bool = False) -> tuple[float, float]:
        """(the value nearest to what is wanted, its distance from the bar: positive on the good side)."""
        low = self.condition.asks_low != failing
        value = min(self.values) if low else max(self.values)
        return value, (self.condition.threshold - value if low else value - self.condition.threshold)


def tally(decisions: Sequence[Decision], side: str = "success") -> list[Tally]:
    """Per condition of one side, over the decisions in which its window was full."""
    tallies: dict[Condition, Tally] = {}
    for decision in decisions:
        for check in getattr(decision, side):
            row = tallies.setdefault(check.condition, Tally(check.condition))
            if check.value is not None:
                row.looks, row.met = row.looks + 1, row.met + bool(check.met)
                row.steps.append(decision.at)
                row.values.append(check.value)
    return list(tallies.values())
