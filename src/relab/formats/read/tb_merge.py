"""Which points of a run's event files count? Files in time order, restarts cut, several step axes told apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from relab.formats.read import step_axis
from relab.formats.read.tfevents import Events, Series

MANY = 100  # places in a tag where the steps go back
APART = 10.0  # steps this many times smaller than the others' at the same time count something else


class Points(NamedTuple):
    """One tag, or a part of it."""

    steps: np.ndarray  # int64
    walls: np.ndarray  # float64, seconds
    values: np.ndarray  # float64

    def take(self, chosen: np.ndarray) -> Points:
        return Points(self.steps[chosen], self.walls[chosen], self.values[chosen])


@dataclass
class Restart:
    """A file that took up again what another had written."""

    file: str
    step: int  # where it restarts
    points: int = 0  # that it superseded
    tags: set[str] = field(default_factory=set)


@dataclass
class Merged:
    """All files of a run as one."""

    tags: dict[str, Points] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    again: Restart | None = None  # a file that wrote the same steps twice
    unordered: int = 0  # tags whose steps went back within a file and were sorted
    strays: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # steps that were left out, of one tag
    negative: int = 0  # steps below 0 of a tag whose points are counted instead


def points(series: Series) -> Points:
    steps, walls, values = series.steps, series.walls, series.values
    return Points(np.array(steps, np.int64), np.array(walls, np.float64), np.array(values, np.float64))


def merge(files: list[tuple[Events, str]]) -> Merged:
    """Tags of several files, given with the prefix of their tags: the later file wins from where it restarts.

    Files whose times overlap were written side by side (two writers); nothing of them is cut.
    """
    merged = Merged()
    for events, prefix in sorted(files, key=lambda pair: began(pair[0])):
        restart = Restart(events.path.name, 0)
        for tag, series in events.scalars.items():
            name = prefix + tag
            part = _in_order(points(series), merged, Place(events.path.name, name))
            merged.tags[name] = _join(merged.tags[name], part, restart, name) if name in merged.tags else part
        if restart.points:
            merged.restarts.append(restart)
    return merged


def began(events: Events) -> float:
    """When a file's first point was written; files without points come first."""
    return min((series.walls[0] for series in events.scalars.values() if series.walls), default=0.0)


def _join(old: Points, new: Points, restart: Restart, name: str) -> Points:
    beside = len(old.walls) > 0 and old.walls.max() > new.walls.min()
    if not beside:
        first = int(new.steps.min())
        keep = old.steps < first
        if dropped := int((~keep).sum()):
            restart.step = min(restart.step, first) if restart.points else first
            restart.points += dropped
            restart.tags.add(name)
        old = old.take(keep)
    both = Points(*(np.concatenate(pair) for pair in zip(old, new, strict=True)))
    return both.take(np.argsort(both.steps, kind="stable")) if beside else both


class Place(NamedTuple):
    """Where points come from."""

    file: str
    tag: str


def _in_order(part: Points, merged: Merged, place: Place) -> Points:
    """Points of one file by step. Steps that go back and come again are a restart, any other disorder is sorted."""
    part = _in_place(part, merged)
    back = np.flatnonzero(part.steps[1:] < part.steps[:-1])  # a difference may not fit into 64 bits
    if not len(back):
        return part
    keep = np.ones(len(part.steps), bool)
    for at in back + 1 if len(back) <= MANY else []:  # steps that go to and fro are no restarts
        before, after = part.steps[:at], part.steps[at:]
        old = keep[:at] & (before >= part.steps[at])
        if old.any() and np.isin(before[old], after).mean() >= 0.5:  # the same steps again: a restart on the same grid
            keep[:at] &= ~old
            _note(merged, place, int(part.steps[at]), int(old.sum()))
    merged.unordered += 1
    part = part.take(keep)
    return part.take(np.argsort(part.steps, kind="stable"))


def _in_place(part: Points, merged: Merged) -> Points:
    """Without the points whose step cannot be theirs; where most are below 0, points are counted instead."""
    below = part.steps < 0
    if step_axis.mostly_below(part.steps):
        merged.negative = max(merged.negative, int(below.sum()))
        return part._replace(steps=np.arange(len(below), dtype=np.int64))
    bad = step_axis.strays(part.steps)
    if bad.sum() > len(merged.strays):
        merged.strays = part.steps[bad]
    return part.take(~bad) if bad.any() else part


def _note(merged: Merged, place: Place, step: int, dropped: int) -> None:
    """One account of all steps that a file wrote twice."""
    merged.again = merged.again or Restart(place.file, step)
    merged.again.step = min(merged.again.step, step)
    merged.again.points += dropped
    merged.again.tags.add(place.tag)


# ---- Axes


def axes(tags: dict[str, Points]) -> dict[str, str]:
    """What each tag's steps count: env_steps, or iteration where they are far smaller than others' at the same time."""
    if not tags:
        return {}
    leader = max(tags, key=lambda tag: (int(tags[tag].steps.max()), len(tags[tag].steps)))
    main = tags[leader]
    order = np.argsort(main.walls, kind="stable")
    walls, steps = main.walls[order], np.maximum.accumulate(main.steps[order])
    return {tag: "iteration" if _other(part, walls, steps) else "env_steps" for tag, part in tags.items()}


def _other(part: Points, walls: np.ndarray, steps: np.ndarray) -> bool:
    used = part.steps > 0
    if not used.any() or part.steps[used].min() == part.steps.max():  # a point at 0 or one alone tells nothing
        return False
    there = np.interp(part.walls[used], walls, steps)
    return bool(np.median(there / part.steps[used]) >= APART)
