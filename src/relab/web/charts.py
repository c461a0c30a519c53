"""What does a chart show? Every seed's rows at the resolution of a screen, the band over seeds, levels and marks: data.

Lines, bands, levels and colours are those of the report (report.curves); what is new is that a screen asks for a
stretch and gets as many rows as it can draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.places import printable
from relab.record import glossary
from relab.record.clock import CLOCK, running
from relab.record.history import Column, History
from relab.report import curves, words
from relab.runs.grouping import Group, Run
from relab.runs.verdict import is_return
from relab.web import names, sampling

COUNTERS = {"updates": "data/updates", "env_steps": "data/env_steps", "agent_steps": "data/agent_steps",
            "episodes": "data/episodes", "sim_steps": "data/sim_steps"}  # fmt: skip
TIME = "time"
AXIS_NAMES = {
    "updates": "optimiser steps",
    TIME: "wall time (s)",
    "episodes": "episodes",
    "env_steps": "environment steps",
    "agent_steps": "agent steps",
    "sim_steps": "simulator steps",
}
BAND_POINTS = 160  # steps that an interval over seeds is worked out at
COLUMNS = (50, 4000)  # of a picture, at least and at most


@dataclass(frozen=True)
class ChartView:
    """How a chart is looked at."""

    metric: str = ""
    x: str = "steps"
    start: float | None = None
    end: float | None = None
    columns: int = 900
    smooth: float = 0.0  # rows of a running mean; 0: none
    log_x: bool = False


@dataclass(frozen=True)
class Trace:
    """One run's rows, as many as the screen can show."""

    name: str
    called: str  # beside the others of its group
    group: str
    place: int
    x: np.ndarray
    y: np.ndarray
    smooth: np.ndarray | None
    rows: int
    exact: bool
    lost: int


@dataclass(frozen=True)
class Chart:
    """Everything that is drawn."""

    metric: str
    title: str
    meaning: str
    unit: str
    axis: str
    axes: list[tuple[str, str]]  # those that every run has, with their names
    traces: list[Trace]
    bands: list[tuple[str, int, curves.Band]]  # group, place, band
    levels: list[curves.Level]
    log_y: str
    span: tuple[float, float] | None  # of the whole axis, whatever is zoomed into
    marks: list[Mark] = field(default_factory=list)

    def to_json(self) -> Document:
        """Plain lists and numpy arrays; NaN becomes null, which is a gap."""
        rows = [
            {"run": t.name, "called": t.called, "group": t.group, "place": t.place, "x": t.x, "y": t.y,
             "smooth": t.smooth, "rows": t.rows, "exact": t.exact, "lost": t.lost}
            for t in self.traces
        ]  # fmt: skip
        bands = [{"group": group, "place": place, "x": b.x, "mean": b.mean, "low": b.low, "high": b.high,
                  "label": b.label} for group, place, b in self.bands]  # fmt: skip
        return {
            "metric": self.metric, "title": self.title, "meaning": self.meaning, "unit": self.unit, "axis": self.axis,
            "axes": self.axes, "lines": rows, "bands": bands, "log_y": self.log_y, "span": self.span,
            "levels": [vars(level) for level in self.levels], "marks": [vars(mark) for mark in self.marks],
        }  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Something that happened, or began, at a place on the axis."""

    x: float
    kind: str  # stage, gate, checkpoint, resume, finding ...
    text: str
    run: str
    severity: str = ""
    finding: int | None = None  # its number in the list on the page


def chart(groups: Sequence[tuple[Group, int]], view: ChartView) -> Chart:
    """One metric of some groups, each with its place among all."""
    runs = [run for group, _ in groups for run in group.runs]
    metric = view.metric or curves.lead_metric(runs)
    axes = shared_axes(runs, metric)
    x = view.x if any(view.x == name for name, _ in axes) else "steps"
    columns = min(max(view.columns, COLUMNS[0]), COLUMNS[1])
    entry = glossary.metric(metric) if metric and glossary.known(metric) else None
    whole = {id(run): points(run, metric, x) for run in runs}
    traces = []
    for group, place in groups:
        called = names.called(group.runs)
        traces += [_trace(run, called[run.name], group.label, place, whole[id(run)], view, columns)
                   for run in group.runs]  # fmt: skip
    limits = curves.possible(metric, runs)
    bands = [(group.label, place, band) for group, place in groups if (band := _band(group, metric, x, view, limits))]
    heights = curves.levels(runs) if is_return(metric) else []
    unit = entry.unit if entry else ""
    ends = [float(p.steps[i]) for p in whole.values() if len(p.steps) for i in (0, -1)]
    return Chart(
        metric, words.metric(metric), entry.meaning if entry else "", unit, axis_name(x, runs, metric), axes,
        [trace for trace in traces if len(trace.x) or trace.rows], bands, heights, _log(metric, unit, whole.values()),
        (min(ends), max(ends)) if ends else None,
    )  # fmt: skip


def points(run: Run, metric: str, x: str) -> Column:
    """A run's metric along an axis that rises: evaluations as they were judged, every row of anything else."""
    column = Column(*curves.points(run, metric))
    places = column.steps.astype(np.float64) if x == "steps" else along(run.history, column.steps, x)
    if len(places) and np.any(np.diff(places) < 0):  # a resumed run may have written a stretch twice
        order = np.argsort(places, kind="stable")
        return Column(places[order], column.values[order])
    return Column(places, column.values)


def along(run: History, steps: np.ndarray, x: str) -> np.ndarray:
    """Where steps lie on another axis, between logged rows by interpolation; a run begins at 0."""
    known = run.columns.get(CLOCK if x == TIME else COUNTERS.get(x, ""))
    if known is None or not len(known.steps):
        return steps.astype(np.float64)
    values = running(known.values) if x == TIME else known.values
    return curves.at(steps, known.steps, values)


def shared_axes(runs: Sequence[Run], metric: str) -> list[tuple[str, str]]:
    """The axes that every run has beside the one its steps count."""
    axis = next((a for run in runs if (a := run.history.axes.get(metric))), "agent_steps")
    others = [name for name in COUNTERS if name != axis and _have(runs, COUNTERS[name])]
    clock = [TIME] if _have(runs, CLOCK) else []
    return [("steps", words.axis(str(axis))), *((name, AXIS_NAMES[name]) for name in [*others, *clock])]


def _have(runs: Sequence[Run], column: str) -> bool:
    return bool(runs) and all(column in run.history.columns for run in runs)


def axis_name(x: str, runs: Sequence[Run], metric: str) -> str:
    return next(name for axis, name in shared_axes(runs, metric) if axis == x)


def _trace(run: Run, called: str, group: str, place: int, whole: Column, view: ChartView, columns: int) -> Trace:
    at, values = whole
    part = sampling.sample(at, values, columns, view.start, view.end, view.log_x)
    smooth = None
    if view.smooth > 0 and len(values) > 2:  # of all rows first, then thinned: the mean is that of the log
        line = sampling.smoothed(values, view.smooth)
        thin = sampling.sample(at, line, columns, view.start, view.end, view.log_x)
        smooth = np.interp(part.x, thin.x, thin.y) if len(thin.x) else None
    return Trace(run.name, called, group, place, part.x, part.y, smooth, part.rows, part.exact, part.lost)


def _band(group: Group, metric: str, x: str, view: ChartView, limits: tuple[float, float]) -> curves.Band | None:
    """The report's band at some of the steps that all seeds share: an interval for each of a million takes minutes.

    Seeds share steps, not seconds: on another axis a step stands at the mean of its places.
    """
    seeds = [(run, column) for run in group.distinct if len((column := points(run, metric, "steps")).steps)]
    if len(seeds) < curves.LEAST:
        return None
    shared = seeds[0][1].steps
    for _, column in seeds[1:]:
        shared = np.intersect1d(shared, column.steps)
    places = shared if x == "steps" else np.mean([along(run.history, shared, x) for run, _ in seeds], axis=0)
    part = np.arange(len(shared))[sampling.window(places, view.start, view.end)]
    if len(part) > BAND_POINTS:
        spread = (
            np.geomspace(1, len(part), BAND_POINTS) - 1 if view.log_x else np.linspace(0, len(part) - 1, BAND_POINTS)
        )
        part = part[np.unique(spread.astype(int))]
    band = curves.band([_line_at(run, column, shared[part]) for run, column in seeds], limits)
    if band is None or x == "steps":
        return band
    return replace(band, x=np.interp(band.x, shared, places).tolist())


def _line_at(run: Run, column: Column, steps: np.ndarray) -> curves.Line:
    """A run at some steps; of a step that was written twice the last row counts, as in the report."""
    rows = np.searchsorted(column.steps, steps, side="right") - 1
    return curves.Line(run.name, run.seed, steps.tolist(), column.values[rows].tolist())


def _log(metric: str, unit: str, columns: Any) -> str:
    """As report.curves.log_y: yes where a log axis suits the metric, offer where it can be asked for, else no."""
    parts = [c.values[np.isfinite(c.values)] for c in columns]
    values = np.concatenate([part for part in parts if len(part)] or [np.zeros(0)])
    if not len(values) or values.min() <= 0 or values.max() / values.min() <= curves.LOG_SPAN:
        return "no"
    return "offer" if unit in curves.LINEAR_UNITS or is_return(metric) else "yes"


# ---- Marks


def marks(runs: Sequence[Run], x: str, kinds: Sequence[str] = ("stage", "gate", "checkpoint", "resume", "best", "alert",
                                                               "error", "stop", "warning")) -> list[Mark]:  # fmt: skip
    """Events of the runs along an axis."""
    made = []
    for run in runs:
        for event in run.history.events:
            step, kind = event.get("step"), str(event.get("kind", ""))
            if kind in kinds and isinstance(step, (int, float)) and math.isfinite(step):
                place = float(along(run.history, np.array([step]), x)[0]) if x != "steps" else float(step)
                made.append(Mark(place, kind, event_text(event), run.name))
    return made


def event_text(event: Document) -> str:
    """An event in a few words: its kind, and what it says of itself."""
    said = [str(event[key]) for key in ("name", "stage", "decision", "reason", "message") if event.get(key) is not None]
    return " ".join([str(event.get("kind", "")), *said])[:160]


# ---- Files


def csv(shown: Chart, groups: Sequence[tuple[Group, int]], view: ChartView) -> str:
    """Every row of what the chart shows, not those of the screen alone: group, run, seed, place on the axis, value."""
    lines = [f"group,run,seed,{_cell(shown.axis)},{_cell(shown.metric)}"]
    for group, _ in groups:
        for run in group.runs:
            at, values = points(run, shown.metric, view.x)
            part = sampling.window(at, view.start, view.end)
            head = ",".join(_cell(each) for each in (group.label, run.name, run.seed_name))
            lines += [f"{head},{a:.17g},{b:.17g}" for a, b in zip(at[part].tolist(), values[part].tolist())]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, no comma cuts in two, and that steers no terminal."""
    shown = printable(text)
    plain = f"'{shown}" if text[:1] in "=+-@\t\r" else shown
    return '"' + plain.replace('"', '""') + '"' if any(c in plain for c in ',"\n\r') else plain
