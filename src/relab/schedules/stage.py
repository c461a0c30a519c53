"""What is trained when? Stages with a length in iterations: a curriculum of sizes, or a queue of start states.

A curriculum moves with the iterations. A queue moves with the starts that were used: a stage of 8 iterations holds 8
starts for each world, and lasts longer where a world begins less than one episode an iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from relab.base.documents import Document
from relab.config.coerce import scalar
from relab.schedules.gate import ScheduleError

MINED = "mined"  # the source of a queue's stage: the worst starts of the evaluations so far


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
    key: str = ""  # what it sets in the environment; empty: the environment's first key, or `starts` of a queue
    replay: int = 1  # of a queue: how often each start is used before the next
    force_reset: int | None = None  # of a queue: episodes are cut after so many steps while it lasts
    left: str = ""  # of a queue: the metric that says which share of it is left

    def __post_init__(self) -> None:
        if self.replay < 1 or (self.force_reset is not None and self.force_reset < 1):
            raise ScheduleError(f"{self.name} needs replay >= 1 and force_reset >= 1, but got {self.replay} and"
                                f" {self.force_reset}")  # fmt: skip

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

    def values(self, k: int, key: str) -> Document:
        """What stage k of a curriculum sets: its size under `key`, and its options."""
        stage = self.stages[k]
        sized = {} if stage.size is None else {key: stage.size}
        return sized | {name: scalar(text) for name, text in stage.options.items() if name not in ("type", "label")}

    def label(self, k: int) -> str:
        """Number from 1 and what it is about: `3:25`, `1:tail_seed_mix_v34_ne`."""
        stage = self.stages[k]
        name = stage.options.get("label") or (stage.source.rpartition("/")[2].partition(".")[0] or stage.size)
        return f"{k + 1}:{name}" if name is not None else str(k + 1)

    def type(self, k: int) -> str:
        return self.stages[k].options.get("type", "")


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


@dataclass(frozen=True)
class Place:
    """Where a queue stands after so many starts: the stage, and what is left of it, of all, and of each type."""

    stage: int  # from 0
    progress: float  # share of the stage's starts that were used
    left: int
    share: float  # of all starts, left
    by_type: dict[str, float]  # type -> share of its starts that is left
    over: bool


def place_in(plan: Plan, used: int, worlds: int) -> Place:
    """The queue after `used` starts of `worlds` worlds.

    >>> place_in(parse_queue("8:a.json|type=ne;15:b.json"), 3 * 10, 10)
    Place(stage=0, progress=0.375, left=200, share=0.8695652173913043, by_type={'ne': 0.625}, over=False)
    """
    sizes = [stage.iterations * worlds for stage in plan.stages]
    total, ends = sum(sizes), list(accumulate(sizes))
    k = min(sum(used >= end for end in ends), len(sizes) - 1)
    kept = [min(max(end - used, 0), size) for end, size in zip(ends, sizes)]
    types = dict.fromkeys(plan.type(i) for i in range(len(sizes)) if plan.type(i))
    mine = {name: [i for i in range(len(sizes)) if plan.type(i) == name] for name in types}
    shares = {name: sum(kept[i] for i in rows) / sum(sizes[i] for i in rows) for name, rows in mine.items()}
    left = sum(kept)
    return Place(k, (sizes[k] - kept[k]) / sizes[k], left, left / total, shares, left == 0)


def next_starts(plan: Plan, used: int, worlds: int, known: int) -> list[int]:
    """Which of a stage's `known` starts the next `worlds` entries are: each `replay` times, round and round.

    >>> next_starts(Plan("q", (Stage(9, None, "a"),), replay=2), 3, 4, 3)
    [1, 2, 2, 0]
    """
    before = sum(stage.iterations * worlds for stage in plan.stages[: place_in(plan, used, worlds).stage])
    return [(entry // plan.replay) % known for entry in range(used - before, used - before + worlds)] if known else []


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
