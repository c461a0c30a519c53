"""Which runs belong together? Run folders at or below a path, grouped by config (all but the seed) and named."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from relab.base.documents import Settings
from relab.config.views import flatten
from relab.record import bounds
from relab.record.state import group_key, seed_of, state_of
from relab.record.history import History
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.base.jsonl import RecordError
from relab.base.text import number, plural
from relab.runs import identity, naming
from relab.runs.naming import shown as shown
from relab.runs.sentences import sentence
from relab.runs.verdict import Verdict, verdict_of


@dataclass(repr=False)
class Run:
    """A run as the report needs it."""

    history: History
    name: str
    seed: Any
    state: str  # status as recorded; stale where it says running and its heart stopped
    verdict: Verdict
    files: tuple[Path, ...] = ()  # what a foreign run was read from; its folder may hold anything besides

    @property
    def seed_name(self) -> str:
        """The seed as people read it; a question mark where nobody knows it."""
        return "?" if self.seed is None else shown(self.seed)

    def __repr__(self) -> str:
        """A few lines for people: what it is, what became of it, what it logged."""
        return "\n".join([self._head, *(f"  {line}" for line in self._lines)])

    def _repr_html_(self) -> str:
        """Everything in it came from logs: escaped."""
        return f"<p><b>{escape(self._head)}</b></p>" + "".join(f"<p>{escape(line)}</p>" for line in self._lines)

    @property
    def _head(self) -> str:
        what = naming.algo_on_env(naming.nameable([(self.history, self.name)]))
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.name}: {'' if what == self.name else what}{seed} ({self.history.source}, {self.state})"

    @property
    def _lines(self) -> list[str]:
        last = self.verdict.points[-1] if self.verdict.points else None
        known = last is not None and math.isfinite(last.se) and last.se > 0
        limits = bounds.of_outcome(self.history, self.verdict.metric)
        error = bounds.with_error(last.mean, last.se, limits, number) if last is not None and known else ""
        outcome = [f"{self.verdict.metric} {number(last.mean)}{error} at step {last.step:,}"] if last is not None else []
        return [sentence(self.verdict), *outcome, f"{plural(len(self.history.columns), 'metric')} in .history.columns"]


@dataclass(repr=False)
class Group:
    """Runs that differ in the seed alone."""

    key: str
    runs: list[Run] = field(default_factory=list)
    label: str = ""

    def __repr__(self) -> str:
        return f"{self.title}: {', '.join(run.name for run in self.runs)}"

    @property
    def config(self) -> Settings:
        return self.runs[0].history.config

    @property
    def title(self) -> str:
        """lr=0.001 · 5 seeds."""
        n = len(self.distinct)
        return f"{self.label} · {n} seeds" if n > 1 else self.label

    @property
    def distinct(self) -> list[Run]:
        """One run per seed: a seed that ran twice is no second sample. Finished ones count before others."""
        kept: dict[str, Run] = {}
        for run in sorted(self.runs, key=lambda r: r.state == "finished"):
            kept[repr(run.seed) if run.seed is not None else run.name] = run
        chosen = {id(run) for run in kept.values()}
        return [run for run in self.runs if id(run) in chosen]

    @property
    def by_seed(self) -> list[Run]:
        """In the order of their seeds, where all are numbers: names alone put 10 before 2."""
        known = all(type(run.seed) is int for run in self.runs)
        return sorted(self.runs, key=lambda r: r.seed) if known else self.runs


def load(path: str | os.PathLike[str], now: float | None = None, hints: Hints | None = None) -> list[Group]:
    """All runs at or below `path`, in groups; RecordError where there are none that can be read."""
    loaded = find.load_all(path, hints)
    if not loaded.runs:
        raise RecordError(f"no run at or below {path} could be read: {loaded.broken[0][0].name}: {loaded.broken[0][1]}")
    return grouped([of_loaded(each, each.name, now) for each in loaded.runs])


def of_loaded(each: find.Loaded, name: str, now: float | None = None) -> Run:
    """A run as the importers found it, with the files that it was read from."""
    source = each.source
    files = source.files or ((source.path,) if source.path.is_file() else ())
    return replace(make_run(each.history, name, now), files=files)


def grouped(runs: Iterable[Run], by_name: bool = True) -> list[Group]:
    """Runs that differ in the seed alone, together; each group named by what sets it apart.

    Without `by_name` the settings alone decide, also where the same seed gave different numbers.
    """
    groups: dict[str, Group] = {}
    members = list(runs)
    named = [(run.history, run.name) for run in members]
    keys = identity.keys(named) if by_name else [group_key(*each) for each in named]
    for run, key in zip(members, keys):
        groups.setdefault(key, Group(key)).runs.append(run)
    ordered = sorted(groups.values(), key=lambda g: g.runs[0].name)
    for group, label in zip(ordered, labels(ordered)):
        group.label = label
    return ordered


def make_run(run: History, name: str, now: float | None = None) -> Run:
    """A run from its history: what a caller who has read it already puts into `grouped`."""
    return Run(run, name, seed_of(run, name), state_of(run, now), verdict_of(run))


def differing(groups: Sequence[Group]) -> list[str]:
    """Config keys that are not the same in all groups; the seed is none of them."""
    return naming.differing([flatten(g.config) for g in groups])


def labels(groups: Sequence[Group]) -> list[str]:
    """The names of groups that stand beside each other: the same in every command."""
    return naming.labels([naming.nameable([(run.history, run.name) for run in group.runs]) for group in groups])
