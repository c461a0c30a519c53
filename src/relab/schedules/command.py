"""What schedule does a foreign command line ask for? Flags become gates, stages and alerts through one small table.

Every bar comes from the command. The table below says only which log metric a flag speaks of, on which side good lies,
and what it is measured on; flags that are not in it are left alone and counted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relab.base.documents import Document
from relab.schedules.alert import Alert
from relab.schedules.gate import Condition, Gate, ScheduleError, number
from relab.schedules.schedule import Claim, Schedule
from relab.schedules.stage import Plan, parse_curriculum, parse_queue, whole

LONGEST = 200_000  # characters of a command that are read

# pattern of the whole flag -> what it sets (the functions below); the first that matches counts
FLAGS = {
    r"(?P<gate>\w*gate)_(?P<side>success|failure)_(?P<word>\w+)_window": "window",
    r"(?P<gate>\w*gate)_required_successes": "required",
    r"(?P<gate>\w*gate)_failure_tolerance": "tolerance",
    r"(?P<gate>\w*gate)_success_freeze_iterations": "success_freeze",
    r"(?P<gate>\w*gate)_freeze_iterations": "freeze",
    r"(?P<gate>\w*gate)_phase_allowance": "allowance",
    r"(?P<gate>\w*gate)_(?P<side>success|failure)_(?P<word>\w+)": "condition",
    r"(?:total|num|n)_iterations": "total",
    r"multi_eval_interval": "every",
    r"curriculum": "curriculum",
    r"(?P<plan>\w+)_stage_spec": "queue",
    r"(?P<plan>\w+)_force_reset_steps": "force_reset",
    r"(?P<plan>\w+)_replay_count": "replay",
    r"n_steps": "steps",
    r"(?P<alert>\w+)_warn_ratio": "alert",
    r"(?P<alert>\w+)_warn_patience": "patience",
    r"(?P<alert>\w+)_warn_interval": "cadence",
    r"(?P<claim>\w*eval\w*?)_episodes": "episodes",
    r"(?P<claim>\w*eval\w*?)_(?:fish|agents)": "agents",
}
# the word in a gate's flag -> metric of the log, comparison that means success, what it is measured on
METRICS = {
    "step_one": ("step_one_death_count", "<=", "step_one_death"),
    "step_one_ratio": ("step_one_death_ratio", "<=", "step_one_death"),
    "early_death": ("early_death_fraction_100", "<=", "death_step"),
    "p10": ("p10", ">=", "death_step"),
    "min_final": ("min_final_survival_rate", ">=", ""),
    "avg_final": ("avg_final_survival_rate", ">=", ""),
}
WINDOWS = {"median": "p10"}  # a window that is named after its statistic, and the word it belongs to
ALSO_NOW = ("early_death",)  # words whose bar holds for the newest value as well as for the median over the window
ALERTS = {"tail_stage": ("tail_queue_remaining_ratio", "<=")}
PLANS = {"tail_seed": "tail_stage_index", "tail": "tail_stage_index"}
LEFT = {"tail_stage_index": "tail_queue_remaining_ratio"}  # where a log says the stage, and what is left of the queue
NUMBERS = r"--\w*(?:iterations|interval|episodes|fish|agents|steps|count): "
UNLESS = {">=": "<", "<=": ">"}


@dataclass
class _Parts:
    """What was gathered so far, by name."""

    gates: dict[str, dict[Any, Any]] = field(default_factory=dict)
    alerts: dict[str, Document] = field(default_factory=dict)
    claims: dict[str, Document] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    queues: dict[str, dict[str, int]] = field(default_factory=dict)  # beginning of a queue's name -> its numbers


def parse_command(command: str | Sequence[str]) -> Schedule:
    """The schedule in a command line; what looks like one and cannot be read is listed in `problems`."""
    return from_flags(flags_of(words_of(command)))


def words_of(command: str | Sequence[str]) -> list[str]:
    """Words as a shell would split them; a command whose quotes do not close is split at blanks."""
    if not isinstance(command, str):
        return [str(word) for word in command]
    text = command[:LONGEST].replace("\\\n", " ")
    try:
        return shlex.split(text, comments=False)
    except ValueError:
        return text.split()


def flags_of(words: Iterable[str]) -> dict[str, str]:
    """`--flag value` and `--flag=value`; dashes inside a name count as underscores, a flag alone is `true`."""
    flags: dict[str, str] = {}
    last = None
    for word in words:
        if re.match(r"--[A-Za-z]", word):
            name, sign, value = word[2:].partition("=")
            last = name.replace("-", "_")
            flags[last] = value if sign else "true"
            last = None if sign else last
        elif last is not None:
            flags[last], last = word, None
    return flags


def from_flags(flags: Mapping[str, Any]) -> Schedule:
    """The schedule in settings of any origin, by their names."""
    parts, schedule = _Parts(), Schedule()
    for flag, value in flags.items():
        try:
            schedule.unknown += not _take(parts, flag, str(value))
        except ScheduleError as error:
            schedule.problems.append(f"--{flag}: {error}")
    for build in (_gates, _alerts):
        try:
            build(parts, schedule)
        except ScheduleError as error:
            schedule.problems.append(str(error))
    schedule.plans, schedule.claims = [_queue(plan, parts) for plan in parts.plans], _claims(parts)
    schedule.total, schedule.every, schedule.steps = (parts.numbers.get(key) for key in ("total", "every", "steps"))
    if not schedule:  # numbers alone are no schedule
        schedule.problems = [problem for problem in schedule.problems if not re.match(NUMBERS, problem)]
    return schedule


def _take(parts: _Parts, flag: str, value: str) -> bool:
    """File one flag away; False where the table does not know it."""
    for pattern, what in FLAGS.items():
        match = re.fullmatch(pattern, flag)
        if match:
            return _file(parts, what, match.groupdict(), flag, value)
    return False


def _file(parts: _Parts, what: str, names: dict[str, str], flag: str, value: str) -> bool:
    if what in ("total", "every", "steps"):
        parts.numbers[what] = whole(value, flag, value)
    elif what in ("force_reset", "replay"):
        parts.queues.setdefault(names["plan"], {})[what] = whole(value, flag, value)
    elif what in ("curriculum", "queue"):
        if ":" not in value:  # another program's word for something else
            return False
        parse = parse_curriculum if what == "curriculum" else parse_queue
        parts.plans.append(parse(value, flag, PLANS.get(names.get("plan", ""), "")))
    elif what in ("alert", "patience", "cadence"):
        if names["alert"] not in ALERTS:
            return False
        row = parts.alerts.setdefault(names["alert"], {})
        row[what] = (number(value, flag), flag) if what == "alert" else whole(value, flag, value)
    elif what in ("episodes", "agents"):
        parts.claims.setdefault(names["claim"], {})[what] = (whole(value, flag, value), flag)
    else:
        return _file_gate(parts.gates.setdefault(names["gate"], {}), what, names, flag, value)
    return True


def _file_gate(row: dict[Any, Any], what: str, names: dict[str, str], flag: str, value: str) -> bool:
    if what == "allowance":
        row[what] = tuple(whole(each, flag, value) for each in value.split(","))
    elif what in ("required", "tolerance", "freeze", "success_freeze"):
        row[what] = whole(value, flag, value)
    else:
        word = WINDOWS.get(names["word"], names["word"]) if what == "window" else names["word"]
        if word not in METRICS:
            return False
        setting = whole(value, flag, value) if what == "window" else (number(value, flag), flag)
        row[(what, names["side"], word)] = setting
    return True


def _gates(parts: _Parts, schedule: Schedule) -> None:
    for name, row in parts.gates.items():
        sides: dict[str, list[Condition]] = {"success": [], "failure": []}
        for key, setting in row.items():
            if isinstance(key, tuple) and key[0] == "condition":
                bar, flag = setting
                sides[key[1]] += _conditions(key[1], key[2], bar, flag, row.get(("window", *key[1:]), 1))
        plain = {key: value for key, value in row.items() if isinstance(key, str)}
        if sides["success"] or sides["failure"]:
            schedule.gates.append(Gate(name, tuple(sides["success"]), tuple(sides["failure"]), **plain))


def _conditions(side: str, word: str, bar: float, flag: str, window: int) -> list[Condition]:
    metric, good, of = METRICS[word]
    comparison = good if side == "success" else UNLESS[good]
    now = Condition(metric, comparison, bar, of=of, source=flag)
    if window == 1:
        return [now]
    over = Condition(metric, comparison, bar, "median", window, of, source=flag)
    return [now, over] if word in ALSO_NOW else [over]


def _alerts(parts: _Parts, schedule: Schedule) -> None:
    for name, row in parts.alerts.items():
        if "alert" in row:
            metric, comparison = ALERTS[name]
            bar, flag = row["alert"]
            counts = {key: row[key] for key in ("patience", "cadence") if key in row}
            schedule.alerts.append(Alert(name, Condition(metric, comparison, bar, source=flag), **counts))


def _queue(plan: Plan, parts: _Parts) -> Plan:
    """A queue with the numbers that other flags give it: `--tail_replay_count` is about `tail_seed_stage_spec`."""
    mine = [row for start, row in parts.queues.items() if plan.name.startswith(start)]
    numbers: Document = {key: value for row in mine for key, value in row.items() if value}
    return replace(plan, left=LEFT.get(plan.metric, ""), **numbers) if plan.name != "curriculum" else plan


def _claims(parts: _Parts) -> list[Claim]:
    """Claims with agents first: the others may explain what the log shows instead."""
    rows = [row for row in parts.claims.values() if "episodes" in row]
    claims = [Claim(row["episodes"][1], row["episodes"][0], row.get("agents", (None,))[0]) for row in rows]
    return sorted(claims, key=lambda claim: claim.agents is None)
