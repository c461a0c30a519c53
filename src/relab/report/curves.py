"""What does a figure show? Every seed, mean and band, levels, reference and onset as data; svg.py draws it.

`x` is the axis the metric was logged on; `updates` and `time` (seconds since the start, pauses left out) stand beside
it where every run of the figure has them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relab.health import onsets
from relab.health.beside import THIRDS, healthy_levels
from relab.health.rule import Finding
from relab.health.view import View
from relab.record import glossary
from relab.record.bounds import ANY, Bounds, bounds_of
from relab.record.clock import running
from relab.record.history import History
from relab.report.parts import LEFT_OUT
from relab.runs.grouping import Group, Run
from relab.runs.naming import task_names
from relab.runs.verdict import is_return
from relab.stats import LEAST, mean_over_seeds

LOG_SPAN = 100.0  # two decades
LINEAR_UNITS = ("return", "share", "reward", "flag")  # differences matter there, not ratios
MOST_POINTS = 400  # per line; a screen has no more columns
SHORT_NAME = 20  # letters of a run's name that stand beside a mark
SLACK = 1e-6


@dataclass(frozen=True)
class Line:
    """One run's values; `called` says what a reference is to the others."""

    name: str
    seed: Any
    x: list[float]
    y: list[float]
    updates: list[float] | None = field(default=None, metadata=LEFT_OUT)
    time: list[float] | None = field(default=None, metadata=LEFT_OUT)
    called: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class Band:
    """Mean and interval over seeds at the steps that they share."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    label: str
    updates: list[float] | None = field(default=None, metadata=LEFT_OUT)
    time: list[float] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class Bundle:
    """The lines of one group."""

    label: str
    lines: list[Line]
    band: Band | None
    place: int | None = field(default=None, metadata=LEFT_OUT)  # of its colour; None: its place in the figure
    metric: str | None = field(default=None, metadata=LEFT_OUT)  # where it logs the figure's return by another name


@dataclass(frozen=True)
class Level:
    """A height with a name: random, solved, ceiling."""

    label: str
    value: float


@dataclass(frozen=True)
class Stretch:
    """A third of the steps, and where healthy runs of the algorithm lie there."""

    start: float
    end: float
    low: float
    high: float


@dataclass(frozen=True)
class Onset:
    """Where the lead finding began, on each axis that is known."""

    step: float
    slug: str
    updates: float | None = field(default=None, metadata=LEFT_OUT)
    time: float | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True)
class CurveFigure:
    """One metric of all groups, with what it is held against; `xs` are the axes that every line has."""

    metric: str
    meaning: str
    unit: str
    axis: str
    levels: list[Level]
    reference: Line | None
    onset: Onset | None
    groups: list[Bundle]
    xs: list[str]
    log_y: str  # yes, offer or no
    healthy: list[Stretch] | None = field(default=None, metadata=LEFT_OUT)  # of the first run's algorithm
    title: str | None = field(default=None, metadata=LEFT_OUT)  # the environment, where a page has several

    @property
    def lines(self) -> list[Line]:
        return [line for group in self.groups for line in group.lines]


@dataclass(frozen=True)
class Panel:
    """The figure of one environment among several, and the places of its groups on the page."""

    env: str
    places: list[int]
    curve: CurveFigure


def curve(
    groups: list[Group],
    metric: str = "",
    findings: Sequence[Finding] = (),
    reference: Run | None = None,
    called: str = "reference",
) -> CurveFigure:
    """One metric of all groups, by default what they are judged by: lines, bands, levels, onset of the lead finding."""
    runs = [run for group in groups for run in group.runs]
    chosen = bool(metric)
    metric = metric or lead_metric(runs)
    entry = glossary.metric(metric) if metric and glossary.known(metric) else None
    beside = replace(line(reference, metric), called=called) if reference is not None else None
    limits = possible(metric, runs)
    bundles = [_bundle(group, metric if chosen else metric_for(group, metric), metric, limits) for group in groups]
    heights = levels(runs) if is_return(metric) else []
    unit = entry.unit if entry else ""
    return CurveFigure(
        metric,
        entry.meaning if entry else "",
        unit,
        next((a for run in runs if (a := run.history.axes.get(metric))), "agent_steps"),
        heights,
        beside,
        onset(findings, {run.name: run for run in runs}),
        bundles,
        _shared_axes(bundles, beside),
        log_y(metric, unit, bundles, heights),
        (healthy_stretches(groups, metric) or None) if runs and not is_return(metric) else None,
    )


def named(data: CurveFigure, env: str, places: Sequence[int]) -> CurveFigure:
    """With the names of its groups as they stand below a heading that names the environment, and their colours."""
    names = task_names([group.label for group in data.groups], env)
    some = [replace(group, label=names[group.label], place=at) for group, at in zip(data.groups, places, strict=True)]
    return replace(data, groups=some, title=env)


def lead_metric(runs: Sequence[Run]) -> str:
    """What the most runs have of that by which they are judged, evaluations first; one evaluation alone is a dot, and
    the returns of training show the way to it."""
    every = sorted({run.verdict.metric for run in runs} - {""}, key=_place)
    judged = max(every, key=lambda name: sum(len(points(run, name)[0]) > 0 for run in runs), default="")
    if not judged.startswith("eval/") or any(len(run.verdict.points) > 1 for run in runs):
        return judged
    trained = [name for name in glossary.RETURNS if not name.startswith("eval/")]
    long = [name for name in trained if any(len(run.history.columns.get(name, ((),))[0]) > 1 for run in runs)]
    return long[0] if long else judged


def _place(metric: str) -> int:
    return glossary.RETURNS.index(metric) if metric in glossary.RETURNS else len(glossary.RETURNS)


def metric_for(group: Group, metric: str) -> str:
    """The figure's metric; of a group that has none of it, its own where both are returns of training: the mean of the
    last 100 episodes and the mean of an iteration's are one height."""
    if not _trained(metric) or any(len(points(run, metric)[0]) for run in group.runs):
        return metric
    return next((run.verdict.metric for run in group.runs if _trained(run.verdict.metric)), metric)


def _trained(metric: str) -> bool:
    return metric in glossary.RETURNS and not metric.startswith("eval/")


def healthy_stretches(groups: Sequence[Group], metric: str) -> list[Stretch]:
    """Where healthy runs of these runs' algorithm and kind of actions lie in each third of the first one's steps; empty
    where nobody knows, or where it is not one place for all of them."""
    views = [View(run.history, run.name, state=run.state) for run in (group.runs[0] for group in groups)]
    known = [healthy_levels(view, metric) for view in views]
    if any(levels != known[0] for levels in known):
        return []
    run, view, levels = groups[0].runs[0], views[0], known[0]
    column = run.history.columns.get(metric)
    if not levels or column is None or len(column.steps) < 2 or view.until == math.inf:
        return []
    begun, last = float(column.steps[0]), float(column.steps[-1])
    ends = np.linspace(begun, last if view.until is None else max(view.until, last), 4).tolist()
    thirds = [(levels.get(third), ends[i], min(ends[i + 1], last)) for i, third in enumerate(THIRDS)]
    return [Stretch(start, end, each.low, each.high) for each, start, end in thirds if each is not None and start < end]


def _bundle(group: Group, metric: str, shown: str, limits: tuple[float, float]) -> Bundle:
    lines = [line(run, metric) for run in group.runs]
    counted = [line(run, metric) for run in group.distinct]
    mean = band([one for one in counted if one.x], limits)
    return Bundle(group.label, [one for one in lines if one.x], mean, metric=metric if metric != shown else None)


def line(run: Run, metric: str) -> Line:
    """One run: evaluations as they were judged, every row of anything else."""
    steps, values = points(run, metric)
    places = {name: at.tolist() for name, at in _other_axes(run.history, metric, steps).items()}
    return Line(run.name, run.seed, steps.tolist(), values.tolist(), **places)


def points(run: Run, metric: str) -> tuple[np.ndarray, np.ndarray]:
    if run.verdict.metric == metric and metric.startswith("eval/"):
        points = run.verdict.points
        return np.array([p.step for p in points], np.int64), np.array([p.mean for p in points], np.float64)
    column = run.history.columns.get(metric)
    return column if column is not None else (np.array([], np.int64), np.array([]))


# ---- Other axes


def _other_axes(run: History, metric: str, steps: np.ndarray) -> dict[str, np.ndarray]:
    axes = {}
    if "data/updates" in run.columns and run.axes.get(metric) != "updates":
        axes["updates"] = at(steps, *run.columns["data/updates"])
    clock = run.columns.get("time/elapsed_s")
    if clock is not None and len(clock.steps):
        axes["time"] = at(steps, clock.steps, running(clock.values))
    return axes


def at(steps: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Between logged rows by interpolation; a run begins at 0."""
    order = np.argsort(known, kind="stable")
    return np.interp(steps, np.append(0, known[order]), np.append(0.0, values[order]))


def _shared_axes(bundles: Sequence[Bundle], reference: Line | None) -> list[str]:
    lines = [one for bundle in bundles for one in bundle.lines]
    lines += [reference] if reference and reference.x else []
    return ["steps", *(name for name in ("updates", "time") if lines and _all_have(lines, name))]


def _all_have(lines: Sequence[Line], axis: str) -> bool:
    return all(getattr(one, axis) is not None for one in lines)


def log_y(metric: str, unit: str, bundles: Sequence[Bundle], heights: Sequence[Level]) -> str:
    """yes: a log axis suits the metric; offer: it can be asked for; no: under two decades, or not all are positive."""
    values = [y for bundle in bundles for one in bundle.lines for y in one.y if math.isfinite(y)]
    everything = [*values, *(level.value for level in heights)]
    if not values or min(everything) <= 0 or max(values) / min(values) <= LOG_SPAN:
        return "no"
    return "offer" if unit in LINEAR_UNITS or metric == "policy/entropy" or is_return(metric) else "yes"


# ---- Levels, onset, band


def levels(runs: list[Run]) -> list[Level]:
    """What a random policy earns, what counts as solved, the highest return there can be."""
    marks: dict[tuple[str, float], None] = {}
    for run in runs:
        if run.verdict.random:
            marks["random", run.verdict.random.mean] = None
        if run.verdict.level is not None:
            marks["solved", run.verdict.level] = None
        view = View(run.history, run.name)
        if view.knows_ceiling:
            marks["ceiling", view.ceiling()] = None
    return [Level(label, value) for label, value in marks]


def onset(findings: Sequence[Finding], runs: dict[str, Run]) -> Onset | None:
    """Where the lead finding began, as its card says (health/onsets.py); with the run's name where there are several.

    What was so from the first step on has no beginning to mark: the first finding that has one is taken.
    """
    slugs = list(dict.fromkeys(f.slug for f in findings))
    starts = [onsets.earliest([(str(f.run), f.onset) for f in findings if f.slug == slug], len(runs)) for slug in slugs]
    slug, began = next(((slug, each) for slug, each in zip(slugs, starts) if each and each.marked), ("", None))
    if began is None:
        return None
    step, run = began.step, runs.get(began.run)
    name = run.name.rpartition("/")[2] if run and len(runs) > 1 else ""
    where = f" ({name})" if 0 < len(name) <= SHORT_NAME else ""  # a long one would lie across the curves
    axes = _other_axes(run.history, "", np.array([step])) if run else {}
    return Onset(step, f"{slug}{where}", **{name: float(at[0]) for name, at in axes.items()})


def possible(metric: str, runs: Sequence[Run]) -> Bounds:
    """What a metric can be in any of these runs; a return under another tool's name is a return."""
    ours = "eval/return_det" if is_return(metric) and not glossary.known(metric) else metric
    ends = [bounds_of(run.history, ours) for run in runs]
    return min((low for low, _ in ends), default=-math.inf), max((high for _, high in ends), default=math.inf)


def band(lines: list[Line], limits: Bounds = ANY) -> Band | None:
    """Mean and 95 % interval at the steps that all seeds share, within what is possible; none under five seeds."""
    seeds = [dict(zip(one.x, one.y)) for one in lines]
    if len(seeds) < LEAST:  # the seeds' own lines are the range
        return None
    rows = [at for at in sorted(set.intersection(*(set(s) for s in seeds)))
            if all(math.isfinite(s[at]) for s in seeds)]  # fmt: skip
    ends = [mean_over_seeds([s[at] for s in seeds], limits) for at in rows]
    if not ends:
        return None
    label = f"mean, {ends[0].level:.0%} interval, n = {len(seeds)} seeds"
    low, high = [e.low for e in ends], [e.high for e in ends]
    return Band(rows, [e.mid for e in ends], low, high, label, **_band_axes(lines, rows))


def _band_axes(lines: list[Line], rows: list[float]) -> dict[str, list[float]]:
    """Seeds share steps, not seconds: by another axis a step stands at the mean of its places."""
    axes = {}
    for name in ("updates", "time"):
        if _all_have(lines, name):
            places = [dict(zip(one.x, getattr(one, name))) for one in lines]
            axes[name] = [float(np.mean([p[at] for p in places])) for at in rows]
    return axes


# ---- Fewer points


def thinned(points: list[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most about `most`, lowest and highest of each stretch kept, so that no spike is lost; NaN stays as well.

    Stretches are as wide as each other, not as rich in rows: few long episodes are as much of a run as many short ones.
    """
    if len(points) <= most:
        return points
    first, last = min(a for a, _ in points), max(a for a, _ in points)
    width = (last - first) / (most // 2) or 1.0
    kept = []
    for _, stretch in itertools.groupby(range(len(points)), key=lambda j: int((points[j][0] - first) / width)):
        some = list(stretch)
        good = [j for j in some if math.isfinite(points[j][1])]
        ends = {min(good, key=lambda j: points[j][1]), max(good, key=lambda j: points[j][1])} if good else set()
        bad = next((j for j in some if not math.isfinite(points[j][1])), None)
        kept += sorted(ends | ({bad} if bad is not None else set()))
    return [points[j] for j in kept]
