"""What does a comparison look like? Means with their intervals, profiles of all runs, and who beats whom: as data.

After the pictures of rliable (Agarwal et al. 2021): every seed is shown, and no interval under five of them.
svg_pictures.py draws them for a page, paper.py with matplotlib for a paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from relab.comparison.numbers import LEAST
from relab.comparison.profile import Standing
from relab.comparison.render import has_interval
from relab.comparison.task import Task
from relab.report import words
from relab.runs.naming import task_names
from relab.stats import wilson

T = TypeVar("T")
SHARE = "share of runs at or above"  # a profile's name upwards
MOST = 8  # variants in one picture; the table has all


@dataclass(frozen=True)
class Row:
    """A mean with its interval (NaN: none), and every seed; `place` gives its colour."""

    label: str
    place: int
    mid: float
    low: float
    high: float
    values: list[float]


@dataclass(frozen=True)
class Trace:
    """The share of a variant's runs at or above each score."""

    label: str
    place: int
    x: list[float]
    share: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Rows(Generic[T]):
    """A title, what the numbers across are, and a row for each variant."""

    kind: str = field(default="", init=False)
    title: str
    across: str
    rows: list[T]


@dataclass(frozen=True)
class Intervals(Rows[Row]):
    """The mean of each variant with its interval, over the dots of its seeds."""

    kind: str = field(default="intervals", init=False)


@dataclass(frozen=True)
class Improvement(Intervals):
    """How likely one run of a variant is to beat one of the reference."""

    kind: str = field(default="improvement", init=False)


@dataclass(frozen=True)
class Profile(Rows[Trace]):
    """A performance profile: the higher a line, the more runs got that far."""

    kind: str = field(default="profile", init=False)


Picture = Intervals | Profile


def of_task(task: Task, places: Mapping[int, int]) -> list[Picture]:
    place = {arm.label: places.get(id(arm.runs[0]), i) for i, arm in enumerate(task.arms)}
    timed = task.measure.at == "first_step_reaching"
    name = f"steps to {task.measure.level:g}" if timed else words.metric(task.measure.metric)
    drawn: list[Picture] = [] if timed else [_intervals(task, place, name)]
    better = _improvement(task, place)
    return [*drawn, _profile(task, place, name), *([better] if better.rows else [])]


def _intervals(task: Task, place: Mapping[str, int], name: str) -> Intervals:
    names = task_names(place, task.env)
    rows = [
        Row(names[v.label], place[v.label], v.mean.mid, v.mean.low, v.mean.high, _finite(v.values))
        for v in task.variants
    ]
    across = f"{name}: mean over seeds" + (", 95% interval" if has_interval(task) else "; no interval under 5 seeds")
    return Intervals(task.env, across, [row for row in rows if row.values][:MOST])


def _improvement(task: Task, place: Mapping[str, int]) -> Improvement:
    names = task_names(place, task.env)
    rows = [
        Row(names[v.label], place[v.label], v.better[0], v.better[1], v.better[2], [])
        for v in task.variants
        if v.better is not None and v.label != task.reference.label and math.isfinite(v.better[0])
    ]
    across = f"probability that one of its runs beats one of {names[task.reference.label]}"
    return Improvement(task.env, across, rows[:MOST])


def _profile(task: Task, place: Mapping[str, int], name: str) -> Profile:
    names = task_names(place, task.env)
    rows = [_trace(names[v.label], place[v.label], _finite(v.values)) for v in task.variants if _finite(v.values)]
    return Profile(task.env, name, rows[:MOST])


def _trace(label: str, place: int, values: Sequence[float]) -> Trace:
    """A step at every run; Wilson's interval at each, which is not 0 wide where all agree."""
    xs, n = sorted(set(values)), len(values)
    counts = [sum(v >= x for v in values) for x in xs]
    ends = [wilson(k, n) for k in counts] if n >= LEAST else []
    low, high = ([end.low for end in ends], [end.high for end in ends]) if ends else ([math.nan] * len(xs),) * 2
    return Trace(label, place, xs, [k / n for k in counts], low, high)


def over_tasks(standings: Sequence[Standing], places: Mapping[str, int] | None = None) -> Profile:
    """Scores of several tasks on one scale: 0 is a random policy, 1 the highest return. `places`: colours by label."""
    labels = [standing.label for standing in standings]
    own = {label: i for i, label in enumerate(labels)}
    known = places if places and all(label in places for label in labels) else own
    rows = [
        Trace(s.label, known[s.label], [x.tau for x in s.shares], [x.share for x in s.shares],
              [x.low for x in s.shares], [x.high for x in s.shares])
        for s in standings
    ]  # fmt: skip
    title = f"{standings[0].tasks} environments"
    return Profile(title, "score (0 random, 1 highest)", rows[:MOST])


def _finite(values: Sequence[float]) -> list[float]:
    return [v for v in values if math.isfinite(v)]
