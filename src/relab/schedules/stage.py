"""What is trained when? Stages with a length in iterations: a curriculum of sizes, or a queue of start states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from relab.schedules.gate import ScheduleError


@dataclass(frozen=True)
class Stage:
    """One stage: how long, and what with."""

    iterations: int
    size: int | None = None  # of a curriculum
    source: str = ""  # of a queue: the file its entries come from; a name, never opened here
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ScheduleError(f"a stage needs iterations >= 1, but got {self.iterations}")


@dataclass(frozen=True)
class Plan:
    """Stages one after another."""

    name: str
    stages: tuple[Stage, ...]
    metric: str = ""  # where a log says which stage is on, counted from 1

    @property
    def length(self) -> int:
        return sum(stage.iterations for stage in self.stages)

    @property
    def starts(self) -> list[int]:
        """Iterations done before each stage."""
        return list(accumulate((stage.iterations for stage in self.stages[:-1]), initial=0))

    def at(self, iteration: int) -> tuple[int, Stage]:
        """Number (from 0) and stage of an iteration, counted from 1; after the end, the last one."""
        before = [k for k, start in enumerate(self.starts) if start < iteration]
        k = before[-1] if before else 0
        return k, self.stages[k]

    def remaining(self, iteration: int) -> float:
        """The share of the plan that is left after an iteration."""
        return max(0.0, 1 - iteration / self.length)


def parse_curriculum(text: str, name: str = "curriculum", metric: str = "") -> Plan:
    """`15:9,20:10` is size 15 for 9 iterations, then size 20 for 10.

    >>> [stage.size for stage in parse_curriculum("15:9,20:10").stages], parse_curriculum("15:9,20:10").length
    ([15, 20], 19)
    """
    stages = []
    for part in text.split(","):
        size, _, iterations = part.partition(":")
        stages.append(Stage(whole(iterations, name, part), whole(size, name, part)))
    return Plan(name, tuple(stages), metric)


def parse_queue(text: str, name: str = "queue", metric: str = "") -> Plan:
    """`8:first.json|type=ne;15:second.json` is 8 iterations from first.json, with an option, then 15 from second.json.

    >>> parse_queue("8:a.json|type=ne;15:b.json").stages[0].options
    {'type': 'ne'}
    """
    stages = []
    for part in text.split(";"):
        iterations, _, rest = part.partition(":")
        source, *options = rest.split("|")
        pairs = dict(_pair(option, name) for option in options)
        stages.append(Stage(whole(iterations, name, part), None, source, pairs))
    return Plan(name, tuple(stages), metric)


def stages_of(rows: Sequence[Any], name: str, metric: str = "") -> Plan:
    """The YAML form: a list of {iterations, size or source, and options}."""
    stages = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise ScheduleError(f"a stage of {name} is a mapping with `iterations`, but got {row!r:.60}")
        options = {str(k): str(v) for k, v in row.items() if k not in ("iterations", "size", "source")}
        size = None if row.get("size") is None else whole(row["size"], name, "size")
        stages.append(
            Stage(whole(row.get("iterations"), name, "iterations"), size, str(row.get("source", "")), options)
        )
    return Plan(name, tuple(stages), metric)


def _pair(option: str, name: str) -> tuple[str, str]:
    key, sign, value = option.partition("=")
    if not sign:
        raise ScheduleError(f"an option of {name} reads key=value, but got {option!r:.60}")
    return key, value


def whole(value: object, name: str, where: str) -> int:
    """A whole number of at most twelve digits, as text or number; a log may have written 60 as 60.0."""
    text = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or len(text) > 12:
        raise ScheduleError(f"{name} needs a whole number in {where!r:.60}, but got {text!r:.40}")
    return int(text)
