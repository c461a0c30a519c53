"""Everything that decides when a run moves on, in one piece of plain data; from YAML, or from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relab.schedules.alert import Alert
from relab.schedules.gate import Condition, Gate, ScheduleError, parse_condition
from relab.schedules.stage import Plan, parse_curriculum, parse_queue, stages_of, whole

GATE_KEYS = {"success", "failure", "first", "required", "tolerance", "freeze", "success_freeze", "allowance"}
NUMBERS = ("required", "tolerance", "freeze", "success_freeze")


@dataclass(frozen=True)
class Claim:
    """How many trials an evaluation is said to have: episodes, times agents where there are several."""

    source: str  # the flag or key of the episodes
    episodes: int
    agents: int | None = None

    @property
    def n(self) -> int:
        return self.episodes * (self.agents or 1)


@dataclass
class Schedule:
    """Gates, plans of stages, alerts, and the budget they have to fit in."""

    gates: list[Gate] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    total: int | None = None  # iterations of the run
    every: int | None = None  # iterations between two checks of the gates
    claims: list[Claim] = field(default_factory=list)  # the first is what the command says; others may explain the log
    unknown: int = 0  # flags that say nothing about schedules
    problems: list[str] = field(default_factory=list)  # what looked like a schedule and could not be read

    def __bool__(self) -> bool:
        return bool(self.gates or self.plans or self.alerts)


def from_mapping(given: Mapping[str, Any]) -> Schedule:
    """The YAML form; ScheduleError says which part cannot be read.

    total: 60
    every: 8
    curriculum: 15:9,20:10          # or a list of {size, iterations}
    queues: {tail: "8:a.json|type=ne;15:b.json"}
    gates:
      penalty:
        success: [early_death_100 <= 0.1, {when: median(4) p10 >= 70, of: death_step}]
        failure: [p10 < 95]
        required: 2
    alerts: {tail: {when: queue_left <= 0.65, patience: 3}}
    """
    unknown = set(given) - {"total", "every", "curriculum", "queues", "gates", "alerts", "claims"}
    if unknown:
        raise ScheduleError(
            f"a schedule has no {sorted(unknown)}: known are total, every, curriculum, queues, gates, alerts"
        )
    found = Schedule(*_counted(given))
    found.total, found.every = (None if given.get(k) is None else whole(given[k], k, k) for k in ("total", "every"))
    found.claims = [_claim(row) for row in given.get("claims") or []]
    return found


def _counted(given: Mapping[str, Any]) -> tuple[list[Gate], list[Plan], list[Alert]]:
    gates = [_gate(name, row) for name, row in _named(given, "gates")]
    plans = [_plan("curriculum", given["curriculum"])] if given.get("curriculum") is not None else []
    plans += [_plan(name, row, queue=True) for name, row in _named(given, "queues")]
    return gates, plans, [_alert(name, row) for name, row in _named(given, "alerts")]


def _named(given: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    found = given.get(key) or {}
    if not isinstance(found, Mapping):
        raise ScheduleError(f"`{key}` must be a mapping from names, but got {found!r:.60}")
    return [(str(name), row) for name, row in found.items()]


def _mapping(row: Any, name: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(row, Mapping) or set(row) - known:
        raise ScheduleError(f"`{name}` must be a mapping of {', '.join(sorted(known))}, but got {row!r:.80}")
    return row


def _gate(name: str, row: Any) -> Gate:
    row = _mapping(row, name, GATE_KEYS)
    sides = {
        side: tuple(_condition(each, f"{name}.{side}") for each in _list(row, side)) for side in ("success", "failure")
    }
    counts = {key: whole(row[key], name, key) for key in NUMBERS if key in row}
    allowance = tuple(whole(each, name, "allowance") for each in _list(row, "allowance"))
    return Gate(name, **sides, first=str(row.get("first", "failure")), **counts, allowance=allowance)  # type: ignore[arg-type]


def _list(row: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = row.get(key) or []
    return found if isinstance(found, list | tuple) else [found]


def _condition(each: Any, source: str) -> Condition:
    if isinstance(each, str):
        return parse_condition(each, source=source)
    row = _mapping(each, source, {"when", "of", "n", "floor"})
    n = None if row.get("n") is None else whole(row["n"], source, "n")
    floor = None if row.get("floor") is None else float(row["floor"])
    return parse_condition(str(row.get("when", "")), of=str(row.get("of", "")), n=n, floor=floor, source=source)


def _plan(name: str, row: Any, queue: bool = False) -> Plan:
    metric = ""
    if isinstance(row, Mapping):
        row = _mapping(row, name, {"stages", "metric"})
        metric, row = str(row.get("metric", "")), row.get("stages")
    if isinstance(row, str):
        return (parse_queue if queue else parse_curriculum)(row, name, metric)
    return stages_of(row if isinstance(row, list | tuple) else [row], name, metric)


def _alert(name: str, row: Any) -> Alert:
    row = _mapping(row, name, {"when", "patience", "cadence"})
    counts = {key: whole(row[key], name, key) for key in ("patience", "cadence") if key in row}
    return Alert(name, _condition(str(row.get("when", "")), name), **counts)


def _claim(row: Any) -> Claim:
    row = _mapping(row, "claims", {"episodes", "agents"})
    agents = None if row.get("agents") is None else whole(row["agents"], "claims", "agents")
    return Claim("claims.episodes", whole(row.get("episodes"), "claims", "episodes"), agents)
