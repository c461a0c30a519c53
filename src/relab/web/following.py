"""What does a run do while one watches it in a terminal? New evaluations, events and findings, and how far it is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from relab.base.documents import Document
from relab.base.errors import NotFoundError
from relab.base.text import count, number
from relab.formats.read import find
from relab.formats.read.hints import of_folder
from relab.formats.read.source import Source
from relab.formats.read.stamps import Stamp, stamp_of
from relab.health.examine import examine_loaded
from relab.record.bounds import of_outcome, with_error
from relab.record.evaluations import Evaluation, evaluations, outcome_of
from relab.record.history import History
from relab.record.state import state_of, steps_of
from relab.report import words
from relab.runs.course import judged_by
from relab.web.announced import Announced
from relab.web.charts import event_text

LAST = 5  # evaluations of a run that are told when one comes to watch it
EXAMINED_S = 5.0  # between two examinations, at least
EVENTS = ("stage", "gate", "alert", "warning", "error", "stop", "resume", "interrupt", "finish")


@dataclass(frozen=True)
class News:
    """Something that was not there at the last look."""

    kind: str  # rows, evaluation, event, finding or state
    step: int
    text: str
    severity: str = ""

    def to_json(self) -> Document:
        return vars(self).copy()


@dataclass
class _Known:
    """What has been said already."""

    step: int = -1
    evaluated: set[tuple[int, str]] = field(default_factory=set)  # step and mode
    events: int = 0
    findings: Announced = field(default_factory=Announced)
    examined: float = -math.inf
    owed: bool = False  # rows came since the last examination


def follow(
    path: Path,
    every: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[News]:
    """News of one run until it no longer runs; of one that does not run, what there is."""
    source, known, before = _only(path), _Known(), None
    while True:
        stamp: Stamp = stamp_of(source)
        history = find.read(source, of_folder(path))
        state = state_of(history)
        if stamp != before:
            before, known.owed = stamp, True
            yield from _rows(history, known)
        if known.owed and (state != "running" or clock() - known.examined >= EXAMINED_S):
            known.examined, known.owed = clock(), False
            yield from _findings(source, path, known)
        if state != "running":
            yield News("state", max(known.step, 0), state)
            return
        pause(every)


def _only(path: Path) -> Source:
    sources = list(find.find(path))
    if len(sources) != 1:
        raise NotFoundError(f"{path} must be one run, but holds {len(sources)}; name one of them")
    return sources[0]


def _rows(run: History, known: _Known) -> Iterator[News]:
    """New evaluations and events one by one; of rows of training the last."""
    yield from _evaluations(run, known)
    for event in run.events[known.events :]:
        if event.get("kind") in EVENTS:
            step = event.get("step")
            yield News("event", step if isinstance(step, int) else max(known.step, 0), event_text(event))
    known.events = len(run.events)
    step = steps_of(run)
    if step > known.step:
        known.step = step
        yield News("rows", step, _standing(run))


def _evaluations(run: History, known: _Known) -> Iterator[News]:
    """A line for each; of a run that was not watched from its beginning the last ones."""
    played = [e for mode in ("det", "sampled") for e in evaluations(run.evals, mode, outcome_of(run.meta))]
    steps: dict[int, list[Evaluation]] = {}
    for each in played:
        if (each.step, each.mode) not in known.evaluated:
            steps.setdefault(each.step, []).append(each)
    fresh = sorted(steps)
    if not known.evaluated and len(fresh) > LAST + 1:
        yield News("evaluation", fresh[-LAST - 1], f"{len(fresh)} evaluations so far; the last {LAST}:")
        fresh = fresh[-LAST:]
    for step in fresh:
        yield News("evaluation", step, f"{_numbers(run, steps[step])} (n = {steps[step][0].n})")
    known.evaluated |= {(each.step, each.mode) for each in played}


def _numbers(run: History, played: list[Evaluation]) -> str:
    """evaluated return 375.1 ± 17.57, sampled 367.9 ± 14.45"""
    texts: list[str] = []
    for each in played:
        noisy, limits = math.isfinite(each.se) and each.se > 0, of_outcome(run, each.metric)
        error = with_error(each.mean, each.se, limits, number) if noisy else ""
        texts.append(f"{'sampled' if texts else words.metric(each.metric)} {number(each.mean)}{error}")
    return ", ".join(texts)


def _standing(run: History) -> str:
    """The newest number of training that says how it goes, and how much of the way is done."""
    metric = next((name for name in ("return/mean_100", "return/mean") if name in run.columns), judged_by(run))
    column = run.columns.get(metric)
    value = (
        f"{words.metric(metric)} {number(float(column.values[-1]))}"
        if column is not None and len(column.values)
        else ""
    )
    total = run.config.get("total_steps")
    way = f" of {count(total)} steps" if isinstance(total, (int, float)) and total > 0 else " steps"
    return f"{count(steps_of(run))}{way}" + (f", {value}" if value else "")


def _findings(source: Source, path: Path, known: _Known) -> Iterator[News]:
    loaded = find.LoadedRuns([find.Loaded(source, find.read(source, of_folder(path)))])
    for finding in examine_loaded(loaded, path).main:
        if known.findings.is_news("", finding.slug, finding.severity):
            step = finding.onset if finding.onset is not None else max(known.step, 0)
            yield News("finding", step, f"{finding.slug}: {finding.message}", finding.severity or "info")
