"""Everything that decides when a run moves on, in one piece of plain data; from YAML, or from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relab.base.documents import Document
from relab.schedules.alert import Alert
from relab.schedules.gate import Condition, Gate, ScheduleError, number, parse_condition
from relab.schedules.sectors import SECTORS
from relab.schedules.stage import Plan, parse_curriculum, parse_queue, stages_of, whole

GATE_KEYS = {"success", "failure", "first", "required", "tolerance", "freeze", "success_freeze", "allowance", "sets"}
NUMBERS = ("required", "tolerance", "freeze", "success_freeze")
KEYS = ("total", "every", "curriculum", "phases", "queues", "gates", "alerts", "multi_eval", "claims")
# what relab's own evaluations measure, by the beginning of the name: bars on one quantity compare
QUANTITIES = {"early_death_": "death_step", "death_p": "death_step", "first_death_p": "first_death",
              "step_one_": "step_one"}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """How many trials an evaluation is said to have: episodes, times agents where there are several."""

    source: str  # the flag or key of the episodes
    episodes: int
    agents: int | None = None

    @property
    def n(self) -> int:
        return self.episodes * (self.agents or 1)


@dataclass(frozen=True)
class MultiEval:
    """An evaluation with a task of its own, every so many iterations: never the stage that is being trained."""

    episodes: int = 12  # worlds, each played once
    probe_episodes: int | None = None  # worlds while training, where fewer will do; then `episodes` are those of one
    # full evaluation at the end of the run; None: `episodes` every time, and no other at the end
    skip_final_eval: bool = False  # leave the full evaluation at the end out
    seed_base: int | None = None  # what its worlds are drawn from; None: the run's seed. With one base runs of
    # different seeds meet the same worlds
    agents: int | None = None  # of a world; None: as in training, all slots
    env: Mapping[str, Any] = field(default_factory=dict)  # other parameters of its environment than training's
    stage: Mapping[str, Any] = field(default_factory=dict)  # what its environment's set_stage gets
    mode: str = "det"  # or sampled
    early: tuple[int, ...] = (100,)  # a death before this step is an early one
    worst: int = 3  # episodes of each evaluation whose starts are kept as the worst
    films: int = 0  # of the worst, so many are filmed into the run's media folder
    sector: str = "NE"  # direction of danger whose share of the deaths in step one is logged
    fast: float = 1.8  # at this speed or faster
    deaths: tuple[
        str, ...
    ] = ()  # ends that count as deaths; empty: the channel `survived`, else all but success and time
    start: tuple[str, ...] = ("predator_heading", "predator_speed")  # channels: where danger begins (degrees), how fast

    def __post_init__(self) -> None:
        agents = 1 if self.agents is None else self.agents
        counts = (self.episodes, agents, self.worst + 1, self.while_training, self.films + 1, (self.seed_base or 0) + 1)
        if min(counts) < 1 or self.mode not in ("det", "sampled") or not self.early or len(self.start) != 2:
            raise ScheduleError(f"multi_eval needs episodes, probe_episodes and agents >= 1, worst, films and seed_base"
                                f" >= 0, mode det or sampled, a number in early and two channels in start, but got"
                                f" {self}")  # fmt: skip
        if self.sector not in SECTORS:
            raise ScheduleError(f"multi_eval.sector must be one of {', '.join(SECTORS)}, but got {self.sector!r:.40}")

    @property
    def while_training(self) -> int:
        """Worlds of the evaluations that gates look at."""
        return self.episodes if self.probe_episodes is None else self.probe_episodes

    @property
    def has_final(self) -> bool:
        return self.probe_episodes is not None and not self.skip_final_eval


@dataclass
class Schedule:
    """Gates, plans of stages, alerts, and the budget they have to fit in."""

    gates: list[Gate] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    total: int | None = None  # iterations of the run
    every: int | None = None  # iterations between two checks of the gates
    claims: list[Claim] = field(default_factory=list)  # the first is what the command says; others may explain the log
    phases: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # key -> its value by stage of the curriculum
    multi_eval: MultiEval | None = None
    steps: int | None = None  # of a world in an iteration, where it is known
    unknown: int = 0  # flags that say nothing about schedules
    problems: list[str] = field(default_factory=list)  # what looked like a schedule and could not be read

    def __bool__(self) -> bool:
        return bool(self.gates or self.plans or self.alerts or self.phases or self.multi_eval)

    @property
    def curriculum(self) -> Plan | None:
        return next((plan for plan in self.plans if plan.name == "curriculum"), None)

    @property
    def queues(self) -> list[Plan]:
        return [plan for plan in self.plans if plan.name != "curriculum"]


def from_mapping(settings: Mapping[str, Any]) -> Schedule:
    """The YAML form; ScheduleError says which part cannot be read.

    total: 60
    every: 8
    curriculum: 15:9,20:10          # or a list of {size, iterations, key: value}, or {stages, key}
    phases: {density_coef: [0, 0.05]}                        # by stage of the curriculum, as far as gates allow
    queues: {tail: "8:a.json|type=ne;15:b.json"}             # or {stages, replay, force_reset, key}
    multi_eval: {episodes: 12, agents: 96}
    gates:
      penalty:
        success: [early_death_100 <= 0.1, {when: median(4) p10 >= 70, of: death_step}]
        failure: [p10 < 95]
        required: 2
        sets: {density_coef: [0, 0.05, 0.1]}                 # by stage of the gate
    alerts: {tail: {when: queue_left <= 0.65, patience: 3}}
    """
    unknown = set(settings) - set(KEYS)
    if unknown:
        raise ScheduleError(f"a schedule has no {sorted(unknown)}: known are {', '.join(KEYS)}")
    schedule = Schedule(*_counted(settings))
    schedule.total, schedule.every = (
        None if settings.get(k) is None else _count(settings[k], k) for k in ("total", "every")
    )
    schedule.phases = _lists(settings, "phases")
    schedule.multi_eval = _multi_eval(settings["multi_eval"]) if settings.get("multi_eval") is not None else None
    schedule.claims = [_claim(row) for row in settings.get("claims") or []] or _own_claim(schedule.multi_eval)
    return schedule


def _count(value: Any, name: str) -> int:
    count = whole(value, name, name)
    if count < 1:
        raise ScheduleError(f"`{name}` must be at least 1, but got {count}")
    return count


def _own_claim(multi_eval: MultiEval | None) -> list[Claim]:
    if multi_eval is None:
        return []
    key = "episodes" if multi_eval.probe_episodes is None else "probe_episodes"
    return [Claim(f"multi_eval.{key}", multi_eval.while_training, multi_eval.agents)]


def _lists(settings: Mapping[str, Any], key: str) -> dict[str, tuple[Any, ...]]:
    """name -> values, one for each stage."""
    lists = dict(_named(settings, key))
    for name, row in lists.items():
        if not isinstance(row, list | tuple) or not row:
            raise ScheduleError(f"`{key}.{name}` needs a list of values, one a stage, but got {row!r:.60}")
    return {name: tuple(row) for name, row in lists.items()}


def _multi_eval(row: Any) -> MultiEval:
    row = _mapping(row, "multi_eval", set(MultiEval.__dataclass_fields__))
    names = ("episodes", "probe_episodes", "seed_base", "worst", "films", "agents")
    keys = [key for key in names if row.get(key) is not None]
    counts: Document = {key: whole(row[key], "multi_eval", key) for key in keys}
    rest: Document = {key: _mapping_of(row[key], f"multi_eval.{key}") for key in ("env", "stage") if key in row}
    if "early" in row:
        rest["early"] = tuple(whole(each, "multi_eval", "early") for each in _list(row, "early"))
    rest |= {key: tuple(str(each) for each in _list(row, key)) for key in ("deaths", "start") if key in row}
    rest |= {key: str(row[key]) for key in ("mode", "sector") if key in row}
    rest |= {"fast": number(str(row["fast"]), "multi_eval.fast")} if "fast" in row else {}
    rest |= {key: _flag(row[key], f"multi_eval.{key}") for key in ("skip_final_eval",) if key in row}
    return MultiEval(**counts, **rest)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ScheduleError(f"`{name}` must be true or false, but got {value!r:.40}")
    return value


def _mapping_of(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ScheduleError(f"`{name}` must be a mapping from names, but got {value!r:.60}")
    return value


def _counted(settings: Mapping[str, Any]) -> tuple[list[Gate], list[Plan], list[Alert]]:
    gates = [_gate(name, row) for name, row in _named(settings, "gates")]
    plans = [_plan("curriculum", settings["curriculum"])] if settings.get("curriculum") is not None else []
    plans += [replace(_plan(name, row, queue=True), left=f"{name}_left") for name, row in _named(settings, "queues")]
    return gates, plans, [_alert(name, row) for name, row in _named(settings, "alerts")]


def _named(settings: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    rows = settings.get(key) or {}
    if not isinstance(rows, Mapping):
        raise ScheduleError(f"`{key}` must be a mapping from names, but got {rows!r:.60}")
    return [(str(name), row) for name, row in rows.items()]


def _mapping(row: Any, name: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(row, Mapping) or set(row) - known:
        raise ScheduleError(f"`{name}` must be a mapping of {', '.join(sorted(known))}, but got {row!r:.80}")
    return row


def _gate(name: str, row: Any) -> Gate:
    row = _mapping(row, name, GATE_KEYS)
    success, failure = (
        tuple(_condition(each, f"{name}.{side}") for each in _list(row, side)) for side in ("success", "failure")
    )
    counts = {key: whole(row[key], name, key) for key in NUMBERS if key in row}
    allowance = tuple(whole(each, name, "allowance") for each in _list(row, "allowance"))
    first, sets = str(row.get("first", "failure")), _lists(row, "sets")
    return Gate(name, success, failure, first, allowance=allowance, sets=sets, **counts)


def _list(row: Mapping[str, Any], key: str) -> Sequence[Any]:
    values = row.get(key) or []
    return values if isinstance(values, list | tuple) else [values]


def _condition(each: Any, source: str) -> Condition:
    if isinstance(each, str):
        return _known(parse_condition(each, source=source))
    row = _mapping(each, source, {"when", "of", "n", "floor"})
    n = None if row.get("n") is None else whole(row["n"], source, "n")
    floor = None if row.get("floor") is None else float(row["floor"])
    return _known(parse_condition(str(row.get("when", "")), of=str(row.get("of", "")), n=n, floor=floor, source=source))


def _known(condition: Condition) -> Condition:
    """Says what relab's own measures are measured on, where the schedule does not."""
    word = condition.metric.rpartition("/")[2]
    of = condition.of or next((of for start, of in QUANTITIES.items() if word.startswith(start)), "")
    return replace(condition, of=of)


def _plan(name: str, row: Any, queue: bool = False) -> Plan:
    metric, more = "", dict[str, Any]()
    if isinstance(row, Mapping):
        row = _mapping(row, name, {"stages", "metric", "key", *(("replay", "force_reset") if queue else ())})
        more = {k: whole(row[k], name, k) for k in ("replay", "force_reset") if row.get(k) is not None}
        more |= {"key": str(row["key"])} if "key" in row else {}
        metric, row = str(row.get("metric", "")), row.get("stages")
    if isinstance(row, str):
        return replace((parse_queue if queue else parse_curriculum)(row, name, metric), **more)
    return replace(stages_of(row if isinstance(row, list | tuple) else [row], name, metric), **more)


def _alert(name: str, row: Any) -> Alert:
    row = _mapping(row, name, {"when", "patience", "cadence"})
    counts = {key: whole(row[key], name, key) for key in ("patience", "cadence") if key in row}
    return Alert(name, _condition(str(row.get("when", "")), name), **counts)


def _claim(row: Any) -> Claim:
    row = _mapping(row, "claims", {"episodes", "agents"})
    agents = None if row.get("agents") is None else whole(row["agents"], "claims", "agents")
    return Claim("claims.episodes", whole(row.get("episodes"), "claims", "episodes"), agents)
