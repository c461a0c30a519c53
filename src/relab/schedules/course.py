"""Where does a schedule stand, and what does it set next? State and decisions as plain data: no world is touched here.

    numbers at a check -> Course.check -> decisions of gates        iteration, starts used -> Course.stage -> values

The state is numbers and lists, so a checkpoint holds all of it and a resumed run decides the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from relab.base.documents import Document
from relab.schedules.alert import Alert, AlertDecision
from relab.schedules.gate import Decision, Gate, GateState, decide
from relab.schedules.schedule import Schedule
from relab.schedules.stage import Place, Plan, place_in

Numbers = Mapping[str, float]


@dataclass
class Course:
    """A schedule under way."""

    schedule: Schedule
    worlds: int
    gates: dict[str, GateState] = field(default_factory=dict)
    recent: dict[str, list[float]] = field(default_factory=dict)  # metric of a gate -> its last values, newest last
    used: dict[str, int] = field(default_factory=dict)  # queue -> starts that were used
    watched: dict[str, list[float]] = field(default_factory=dict)  # alert -> the last values of its metric
    active: dict[str, bool] = field(default_factory=dict)  # alert -> whether it is on
    mined: list[list[float]] = field(default_factory=list)  # velocities of the worst starts, newest last

    def __post_init__(self) -> None:
        for gate in self.schedule.gates:
            self.gates.setdefault(gate.name, GateState())
        for queue in self.schedule.queues:
            self.used.setdefault(queue.name, 0)

    # ---- What is on

    def stage_of(self, iteration: int) -> int:
        """The curriculum's stage, from 0; 0 where there is no curriculum."""
        plan = self.schedule.curriculum
        return plan.at(iteration)[0] if plan else 0

    def phase_of(self, iteration: int) -> int:
        """The stage of the curriculum, as far as every gate with an allowance lets it go."""
        limits = [limit_of(gate, self.gates[gate.name]) for gate in self.schedule.gates]
        return max(min([self.stage_of(iteration), *(limit for limit in limits if limit is not None)]), 0)

    def place(self, queue: Plan) -> Place:
        return place_in(queue, self.used[queue.name], self.worlds)

    def stage(self, iteration: int, first_key: str = "") -> Document:
        """Everything that the curriculum, the phases and the gates set in this iteration, by the environment's keys."""
        plan, phase = self.schedule.curriculum, self.phase_of(iteration)
        values = plan.values(self.stage_of(iteration), plan.key or first_key) if plan else {}
        values |= {key: row[min(phase, len(row) - 1)] for key, row in self.schedule.phases.items()}
        for gate in self.schedule.gates:
            stage = self.gates[gate.name].stage
            values |= {key: row[min(stage, len(row) - 1)] for key, row in gate.sets.items()}
        for queue in self.schedule.queues:
            if queue.force_reset is not None:
                values["time_limit"] = 0 if self.place(queue).over else queue.force_reset
        return values

    def labels(self, iteration: int) -> dict[str, str]:
        """What is on, in words: of the curriculum, of each queue and its type."""
        plan, labels = self.schedule.curriculum, {}
        if plan:
            labels["curriculum"] = plan.label(self.stage_of(iteration))
        for queue in self.schedule.queues:
            place = self.place(queue)
            labels[queue.name] = "over" if place.over else queue.label(place.stage)
        return labels

    def types(self) -> dict[str, str]:
        """The type of each queue's stage, where it has one and is not over."""
        places = {queue.name: (queue, self.place(queue)) for queue in self.schedule.queues}
        kinds = {name: queue.type(place.stage) for name, (queue, place) in places.items() if not place.over}
        return {name: kind for name, kind in kinds.items() if kind}

    def trace(self, iteration: int) -> dict[str, float]:
        """Numbers of this iteration, by bare names: stages from 1, what is left of queues, streaks of alerts."""
        numbers: dict[str, float] = {}
        if self.schedule.curriculum:
            numbers["stage"] = self.stage_of(iteration) + 1
        if self.schedule.phases:
            numbers["phase"] = self.phase_of(iteration) + 1
        for queue in self.schedule.queues:
            place = self.place(queue)
            numbers |= {f"{queue.name}_stage": place.stage + 1, f"{queue.name}_progress": place.progress}
            numbers |= {f"{queue.name}_starts": self.used[queue.name], f"{queue.name}_left": place.share}
            numbers |= {f"{queue.name}_left_{kind}": share for kind, share in place.by_type.items()}
        return numbers | {f"{name}_stage": state.stage + 1 for name, state in self.gates.items()}

    # ---- What happens

    def take(self, starts: int) -> None:
        """So many worlds began: they used starts of every queue that is not over."""
        for queue in self.schedule.queues:
            total = queue.length * self.worlds
            self.used[queue.name] = min(self.used[queue.name] + starts, total)

    def watch(self, iteration: int, numbers: Numbers) -> list[tuple[Alert, AlertDecision]]:
        """Every alert that is due looks at its metric; those that came on now are returned."""
        fired = []
        for alert in self.schedule.alerts:
            if iteration % alert.cadence:
                continue
            rows = self.watched.setdefault(alert.name, [])
            rows.append(lookup(numbers, alert.when.metric))
            del rows[: -(alert.patience + alert.when.window)]
            decision = alert.decide({alert.when.metric: rows})
            if decision.fires and not self.active.get(alert.name, False):
                fired.append((alert, decision))
            self.active[alert.name] = decision.fires
        return fired

    def streaks(self) -> dict[str, float]:
        """How many checks in a row each alert's condition holds, counted up to its patience and window."""
        decided = {a.name: a.decide({a.when.metric: self.watched.get(a.name, [])}) for a in self.schedule.alerts}
        return {f"{name}_streak": decision.streak for name, decision in decided.items()}

    def check(self, iteration: int, numbers: Numbers) -> list[tuple[Gate, Decision]]:
        """Every gate decides on the numbers of now and of its window before."""
        decisions = []
        for gate in self.schedule.gates:
            for condition in (*gate.success, *gate.failure):
                self.recent.setdefault(condition.metric, [])
            decision = self.decide(gate, iteration, numbers)
            self.gates[gate.name] = decision.state
            decisions.append((gate, decision))
        self.remember(numbers)
        return decisions

    def decide(self, gate: Gate, iteration: int, numbers: Numbers) -> Decision:
        values = {name: [*self.recent[name], lookup(numbers, name)] for name in gate.metrics}
        return decide(gate, values, self.gates[gate.name], iteration)

    def remember(self, numbers: Numbers) -> None:
        widest = max((c.window for g in self.schedule.gates for c in (*g.success, *g.failure)), default=1)
        for name, rows in self.recent.items():
            rows.append(lookup(numbers, name))
            del rows[:-widest]

    def mine(self, starts: list[list[float]], most: int = 256) -> None:
        """Keep the worst starts of an evaluation, newest last."""
        self.mined = [*(s for s in self.mined if s not in starts), *starts][-most:]

    # ---- Keeping

    def to_dict(self) -> Document:
        gates = {name: state.to_dict() for name, state in self.gates.items()}
        lists = {"seen": self.recent, "watched": self.watched, "mined": self.mined}
        return {"gates": gates, "used": dict(self.used), "active": dict(self.active)} | lists

    def load(self, kept: Mapping[str, Any]) -> None:
        self.gates = {name: GateState(**row) for name, row in kept["gates"].items()}
        self.used, self.active = dict(kept["used"]), dict(kept["active"])
        self.recent = {name: [float(x) for x in rows] for name, rows in kept["seen"].items()}
        self.watched = {name: [float(x) for x in rows] for name, rows in kept["watched"].items()}
        self.mined = [list(row) for row in kept["mined"]]


def limit_of(gate: Gate, state: GateState) -> int | None:
    """The last phase, from 0, that a gate with an allowance lets through."""
    return gate.allowance[min(state.stage, len(gate.allowance) - 1)] - 1 if gate.allowance else None


def lookup(numbers: Numbers, word: str) -> float:
    """A number by its name or by the last part of it, evaluations before the rest; NaN where it is missing."""
    if word in numbers:
        return float(numbers[word])
    names = [name for name in numbers if name.rpartition("/")[2] == word]
    names.sort(key=lambda name: not name.startswith("multi/"))
    return float(numbers[names[0]]) if names else math.nan


def with_total(schedule: Schedule, total: int) -> Schedule:
    """The schedule in a run of so many iterations, unless it says so itself."""
    return schedule if schedule.total is not None else replace(schedule, total=total)
