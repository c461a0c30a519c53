"""What would other bars have decided? A gate with changed numbers on a run's own log, decision by decision.

Changes are words like `success.p10=60`, `success.early_death.window=1`, `success.step_one=none`, `required=1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relab.base.documents import Document
from relab.base.near import hint
from relab.config.base import ConfigError, require
from relab.health.gate_data import checks_of, iterations_of, replayed, trials_of
from relab.health.view import View
from relab.schedules import chance
from relab.schedules.bounds import kind
from relab.schedules.evaluated import PROBE
from relab.schedules.gate import Check, Condition, Decision, Gate, ScheduleError, number
from relab.schedules.schedule import NUMBERS, Schedule
from relab.schedules.stage import whole

POWER = 0.8


@dataclass(frozen=True)
class Row:
    """One check: what the run recorded, what the gate as declared says, and what the changed one would have said."""

    step: int
    iteration: int
    recorded: str | None
    declared: Decision
    changed: Decision

    @property
    def differs(self) -> bool:
        return self.declared.outcome != self.changed.outcome

    def to_dict(self) -> Document:
        about = {"step": self.step, "iteration": self.iteration, "recorded": self.recorded}
        return about | {"declared": self.declared.to_dict(), "changed": self.changed.to_dict(), "differs": self.differs}


def rows_of(view: View, gate: Gate, changed: Gate) -> list[Row]:
    """Every check of a gate; Missing where the log lacks a metric."""
    log, iteration = dict(checks_of(view, gate)), iterations_of(view, gate)
    pairs = zip(replayed(view, gate), replayed(view, changed))
    return [Row(a.at, iteration.get(a.at, a.at), log.get(a.at), a, b) for a, b in pairs]


# ---- Changing a gate


def change(gate: Gate, words: Mapping[str, str]) -> Gate:
    """The gate with other numbers; ConfigError names what a word could have meant."""
    try:
        for word, value in words.items():
            gate = _numbered(gate, word, value) if word.partition(".")[0] not in ("success", "failure") else (
                _barred(gate, word, value)
            )  # fmt: skip
    except ScheduleError as error:
        raise ConfigError(str(error)) from None
    return gate


def _numbered(gate: Gate, word: str, value: str) -> Gate:
    if word == "first":
        return replace(gate, first=value)
    known = [*NUMBERS, "first", "success.METRIC", "failure.METRIC"]
    require(word in NUMBERS, f"a gate has no `{word}`{hint(word, known)}")
    return replace(gate, **{word: whole(value, gate.name, word)})  # type: ignore[arg-type]


def _barred(gate: Gate, word: str, value: str) -> Gate:
    """`success.p10=60` moves the bar of every success condition on p10; `none` drops them."""
    side, _, rest = word.partition(".")
    name, window = rest.removesuffix(".window"), rest.endswith(".window")
    old: tuple[Condition, ...] = getattr(gate, side)
    meant = [c for c in old if name in names_of(c)]
    known = sorted({short for c in old for short in names_of(c)})
    require(bool(meant), f"{gate.name} has no `{side}.{name}`; it has {', '.join(known) or 'none'}")
    new = []
    for condition in old:
        if condition not in meant:
            new.append(condition)
        elif value.lower() not in ("none", "null"):
            new.append(_moved(condition, value, window))
    return replace(gate, **{side: tuple(dict.fromkeys(new))})  # type: ignore[arg-type]


def _moved(condition: Condition, value: str, window: bool) -> Condition:
    if not window:
        return replace(condition, threshold=number(value, str(condition)))
    if condition.statistic == "last":  # a bar on the newest value has no window
        return condition
    return replace(condition, window=whole(value, str(condition), "window"))


def names_of(condition: Condition) -> set[str]:
    """What a condition may be called: its metric, the metric's last part, the word in its flag."""
    metric = condition.metric
    flag = condition.source.partition("_success_")[2] or condition.source.partition("_failure_")[2]
    return {name for name in (metric, metric.rpartition("/")[2], flag) if name}


# ---- How sure each decision is


@dataclass(frozen=True)
class Near:
    """A condition so near to its bar that the trials behind it do not decide."""

    step: int
    check: Check
    n: float  # independent trials that the check rests on
    need: int  # that it would take, to decide in four of five cases
    agents: int | None  # trials of one episode
    clustered: bool  # whether n was measured over episodes

    @property
    def episodes(self) -> int | None:
        return None if self.agents is None else -(-self.need // self.agents)

    def to_dict(self) -> Document:
        about = {"step": self.step, "n": self.n, "need": self.need, "episodes": self.episodes}
        return about | {"clustered": self.clustered, **self.check.to_dict()}


def near_bars(view: View, schedule: Schedule, decisions: Sequence[Decision]) -> list[Near]:
    """Shares and counts of the newest values that lie within what chance alone moves them."""
    trials, near = trials_of(view, schedule), []
    for decision in decisions:
        for check in (*decision.success, *decision.failure):
            each = _near(view, schedule, decision.at, check, trials)
            if each is not None:
                near.append(each)
    return near


def _near(view: View, schedule: Schedule, step: int, check: Check, trials: int | None) -> Near | None:
    condition = check.condition
    n = condition.n or trials
    if kind(condition) not in ("share", "below", "count") or condition.window > 1 or check.value is None or not n:
        return None
    scale = n if kind(condition) == "count" else 1
    rate, bar = check.value / scale, condition.threshold / scale
    if not (0 < bar < 1 and 0 <= rate <= 1):
        return None
    worth = effective(view, step, condition.metric)
    inside = abs(rate - bar) < chance.undecided(bar, worth or n)
    if not inside or rate == bar:
        return None
    need = chance.samples_to_tell(rate, bar, power=POWER)
    alike = n / worth if worth else 1.0  # agents of an episode that are alike count less
    agents = next((claim.agents for claim in schedule.claims if claim.agents), None)
    return Near(step, check, worth or float(n), round(need * alike), agents, worth is not None)


def effective(view: View, step: int, metric: str) -> float | None:
    """Independent trials that an evaluation's share is worth, where its row says so."""
    word = metric.rpartition("/")[2].replace("_count", "_share")
    rows = [row for row in view.history.probes if row.get("probe") == PROBE and row.get("step") == step]
    worth = rows[-1].get("effective") if rows else None
    trials = worth.get(word) if isinstance(worth, Mapping) else None
    return float(trials) if isinstance(trials, (int, float)) else None
