"""What is a run, a metric, a setting called where it is written? Names come from logs: none may lead elsewhere."""

from __future__ import annotations

import datetime
import hashlib
import re
import unicodedata
from typing import Any, NamedTuple

import numpy as np

from relab.base.documents import Settings
from relab.config.views import flatten
from relab.formats.read.source import FOREIGN
from relab.record.history import Column, History
from relab.record.state import experiment_name

LONGEST = 100  # bytes of a folder's name
NAMES = ("relab", "original")


class Named(NamedTuple):
    """A metric under the name it is written with."""

    name: str
    column: Column
    axis: str


def folder_name(name: str, taken: set[str]) -> str:
    """A run's name as one folder's: never a path, never hidden, never one of `taken` (small letters), where it then is.

    >>> folder_name("exp/ppo s0/../x", set()), folder_name("a/b", {"a__b"})
    ('exp__ppo_s0__.__x', 'a__b-2')
    >>> folder_name("倒立摆/基线 s0", set())
    '倒立摆__基线_s0'
    """
    plain = re.sub(r"[^\w.=+,-]", "_", unicodedata.normalize("NFC", name).replace("/", "__"))
    plain = re.sub(r"\.{2,}", ".", plain).lstrip("._-") or "run"
    if len(plain.encode()) > LONGEST:
        plain = f"{cut(plain, LONGEST - 9)}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    free_name, number = plain, 2
    while free_name.lower() in taken:  # some disks do not tell A from a
        free_name, number = f"{plain}-{number}", number + 1
    taken.add(free_name.lower())
    return free_name


def cut(text: str, longest: int) -> str:
    """As many characters as have room in so many bytes: disks count those.

    >>> cut("abc", 2), cut("倒立摆", 7)
    ('ab', '倒立')
    """
    return text.encode("utf-8", "replace")[:longest].decode("utf-8", "ignore")


def named(history: History, names: str) -> list[Named]:
    """All metrics: relab's names, or the tool's own with the numbers as it logged them.

    What has no name in relab keeps the tool's in both cases, and what the tool has no name for keeps relab's.
    """
    theirs = {ours: name for name, ours in reversed(history.mapping.items())} if names == "original" else {}
    by_name: dict[str, Named] = {}
    for ours, column in history.columns.items():
        name = theirs.get(ours, ours.removeprefix(FOREIGN))
        if ours in theirs:
            column = Column(column.steps, column.values / history.factors.get(ours, 1.0))
        name = name if name not in by_name else ours
        by_name[name] = Named(name, column, history.axes[ours])
    return list(by_name.values())


def settings_of(history: History, names: str) -> Settings:
    """The config as flat keys: relab's dotted ones, or the tool's own."""
    theirs = {ours: key for key, ours in history.keys.items()} if names == "original" else {}
    title = experiment_name(history)
    flat = flatten(history.config) | ({"exp_name": title} if title else {})
    renamed = {theirs.get(key, key.removeprefix("foreign.")): value for key, value in flat.items()}
    return renamed if len(renamed) == len(flat) else flat


def seconds_of(when: Any) -> float | None:
    """A time as the record writes it, in seconds since 1970; None where it is none."""
    try:
        return datetime.datetime.fromisoformat(str(when).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


class Clock:
    """When was a step? As far as the run says; 0 where it says nothing, so that no time is made up."""

    def __init__(self, history: History):
        times = (seconds_of(history.meta.get(key)) for key in ("started", "created"))
        self.begin = next((when for when in times if when is not None and when > 0), 0.0)
        self.elapsed = history.columns.get("time/elapsed_s") if self.begin else None
        self.axis = history.axes.get("time/elapsed_s")

    def at(self, steps: np.ndarray, axis: str) -> np.ndarray:
        """Seconds since 1970 of each step."""
        good = self.elapsed is not None and axis == self.axis and (np.diff(self.elapsed.steps) >= 0).all()
        if self.elapsed is None or not good or not np.isfinite(self.elapsed.values).all():
            return np.full(len(steps), self.begin)
        return self.begin + np.interp(steps, self.elapsed.steps, self.elapsed.values)
