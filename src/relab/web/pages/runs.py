"""The page of all runs: a row for each group of seeds, with n, spread and interval; only settings that vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from relab.base.documents import Document
from relab.base.errors import UserError
from relab.base.numbers import is_number
from relab.config.views import MISSING
from relab.report import svg_scale, svg_small
from relab.runs import naming
from relab.runs.listing import ListedRun, full_key
from relab.runs.seeds import SeedGroup, over_seeds
from relab.stats import SeedMean
from relab.web import bench as benches
from relab.web import query, render
from relab.web.bench import Bench
from relab.web.query import Choice

FEW_COLUMNS = 4  # settings that are shown until somebody chooses
COMPARED = 400  # groups whose settings are held against each other for what varies
READ = 300  # runs whose logs are read for another number than the last
Marks = dict[str, set[tuple[str, str]]]  # run or label -> severity and rule of what was found there


@dataclass(frozen=True)
class Row:
    """A group in a line."""

    group: SeedGroup
    settings: list[str]
    mean: SeedMean
    values: list[float]
    strip: Markup
    states: list[tuple[str, int]]
    findings: int
    severity: str
    steps: int | None
    sign: float
    star: bool
    tags: list[str]
    each: dict[str, float]  # name of a run -> its number
    note: str  # that all its runs have


@dataclass(frozen=True)
class TablePage:
    """The table, and what is said around it."""

    choice: Choice
    rows: list[Row]
    groups: int
    runs: int
    columns: list[str]
    more_columns: list[str]
    metrics: list[str]
    notes: list[str]
    flat: dict[str, bool]  # which of the fixed columns say the same in every row


def page(request: Request) -> Response:
    """The head first, then the table: a browser shows the page while it is worked out."""
    bench = benches.of(request)
    choice = query.parse(request.query_params)
    head = render.streamed(
        "runs.html", **benches.frame(request), choice=choice, table=lambda: table_html(bench, choice)
    )
    return StreamingResponse(head, media_type="text/html")


def fragment(request: Request) -> Response:
    """The table alone, for a page that is open."""
    return HTMLResponse(table_html(benches.of(request), query.parse(request.query_params)))


def table_html(bench: Bench, choice: Choice) -> Markup:
    """An unknown setting in a filter is said where the table would be."""
    try:
        content = table(bench, choice)
    except UserError as error:
        return Markup(render.page("problem.html", message=str(error)))
    empty = not bench.shelf.every()
    return Markup(render.page("table.html", page=content, empty=empty, root=bench.root, remarks=bench.shelf.remarks(),
                              progress=bench.shelf.progress))  # fmt: skip


def table(bench: Bench, choice: Choice) -> TablePage:
    groups = chosen(bench, choice)
    columns, more = columns_of(groups, choice)
    health = bench.watcher.health
    numbers, notes = numbers_of(bench, groups, choice)
    marks = _marks(health.findings)
    ranked = ordered(groups, choice, numbers)
    rows = with_strips([_row(group, columns, numbers, marks) for group in ranked[: choice.top]])
    metrics = list(dict.fromkeys(group.metric for group in groups if group.metric))
    flat = {name: len({getattr(group, name) for group in groups}) < 2 for name in ("env", "algo")}
    runs = sum(len(group.runs) for group in groups)
    return TablePage(choice, rows, len(groups), runs, columns, more, metrics, notes, flat)


def chosen(bench: Bench, choice: Choice) -> list[SeedGroup]:
    """The groups that an address asks for, each with those of its runs that fit."""
    groups = bench.shelf.groups(choice.query)
    if choice.words:
        kept = [
            SeedGroup(g.key, g.label, g.place, [run for run in g.runs if choice.holds(run)], g.settings) for g in groups
        ]
        groups = [group for group in kept if group.runs]
    for slug in choice.findings:
        ill = [f for f in bench.watcher.health.findings if slug in f["slug"]]
        runs, labels = {f.get("run") for f in ill}, {f["where"] for f in ill}
        groups = [g for g in groups if g.label in labels or any(run.name in runs for run in g.runs)]
    return groups


def columns_of(groups: Sequence[SeedGroup], choice: Choice) -> tuple[list[str], list[str]]:
    """The settings that are shown, and the others that vary."""
    vary = naming.differing([group.settings for group in groups[:COMPARED]]) if len(groups) > 1 else []
    loud = [key for key in vary if key not in ("algo.name", "env.name") and not naming.INCIDENTAL.search(key)
            and _told_apart(groups, key)]  # fmt: skip
    keys = set().union(*(group.settings for group in groups)) if choice.columns else set()
    picked = [full_key(key, keys) for key in choice.columns if key != "none"]
    columns = picked if choice.columns else loud[:FEW_COLUMNS]
    return columns, [key for key in vary if key not in columns]


def _told_apart(groups: Sequence[SeedGroup], key: str) -> bool:
    """Whether two configs are known to differ in it; that a log does not say it is no difference."""
    return len({naming.canonical(group.settings[key]) for group in groups[:COMPARED] if key in group.settings}) > 1


def numbers_of(
    bench: Bench, groups: Sequence[SeedGroup], choice: Choice
) -> tuple[Callable[[ListedRun], float], list[str]]:
    """The number of each run: its outcome, which the index has, or its best or the one at a step, from its log."""
    if choice.value == "last":
        return lambda run: math.nan if run.outcome is None else run.outcome, []
    runs = [run for group in groups for run in group.runs]
    known = {run.rowid: _from_log(bench, run, choice) for run in runs[:READ]}
    left = len(runs) - len(known)
    note = (
        [f"of {left:,} runs the log was not read for this; a filter brings the table below {READ} runs"]
        if left > 0
        else []
    )
    return lambda run: known.get(run.rowid, math.nan), note


def _from_log(bench: Bench, listed: ListedRun, choice: Choice) -> float:
    """The highest point of a run's course, or the last one up to a step."""
    try:
        points = bench.shelf.run(listed).verdict.points
    except Exception:  # a run that cannot be read has no number; its own page says why
        return math.nan
    if choice.value == "best":
        return max((p.mean for p in points if math.isfinite(p.mean)), default=math.nan)
    return next((p.mean for p in reversed(points) if p.step <= (choice.step or 0)), math.nan)


def _marks(findings: Sequence[Document]) -> Marks:
    marks: Marks = {}
    for finding in findings:
        mark = str(finding["severity"]), str(finding["slug"])
        marks.setdefault(str(finding.get("run") or finding["where"]), set()).add(mark)
    return marks


def _row(group: SeedGroup, columns: Sequence[str], number_of: Callable[[ListedRun], float], marks: Marks) -> Row:
    metric = group.metric
    values = [number_of(run) if run.metric == metric else math.nan for run in group.distinct]
    states: dict[str, int] = {}
    for run in group.runs:
        states[run.state] = states.get(run.state, 0) + 1
    kinds = set().union(*(marks.get(name, ()) for name in (group.label, *(run.name for run in group.runs))))
    worst = next((s for s in ("error", "warning", "info") if any(s == severity for severity, _ in kinds)), "")
    return Row(
        group, [naming.shown(group.settings.get(key, MISSING)) for key in columns], over_seeds(group, values), values,
        Markup(""), sorted(states.items()), sum(s == worst for s, _ in kinds), worst,
        max((run.steps for run in group.runs if run.steps is not None), default=None),
        max(run.sign for run in group.runs), any(run.star for run in group.runs),
        sorted({tag for run in group.runs for tag in run.tags}), {run.name: number_of(run) for run in group.runs},
        group.runs[0].note if len({run.note for run in group.runs}) == 1 else "",
    )  # fmt: skip


def ordered(groups: list[SeedGroup], choice: Choice, number_of: Callable[[ListedRun], float]) -> list[SeedGroup]:
    """By what is asked for; the highest, newest and longest first, the rest by the alphabet."""
    key, back = choice.sort.removeprefix("-"), choice.sort.startswith("-")
    ways: dict[str, Callable[[SeedGroup], Any]] = {
        "age": lambda group: -max(run.sign for run in group.runs),
        "name": lambda group: group.label.casefold(),
        "outcome": lambda group: -_mean(group, number_of),
        "steps": lambda group: -max((run.steps or 0) for run in group.runs),
        "n": lambda group: -len(group.runs),
        "env": lambda group: group.env,
        "algo": lambda group: group.algo,
        "state": lambda group: sorted(run.state for run in group.runs),
    }
    way = ways.get(key) or (lambda group: _sortable(group.settings.get(key)))
    if back:
        return sorted(groups, key=way, reverse=True)
    return sorted(groups, key=lambda group: (not any(run.star for run in group.runs), way(group)))


def _mean(group: SeedGroup, number_of: Callable[[ListedRun], float]) -> float:
    """For the order alone; what is shown comes from over_seeds."""
    values = [v for run in group.distinct if run.metric == group.metric and math.isfinite(v := number_of(run))]
    return sum(values) / len(values) if values else -math.inf


def _sortable(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if is_number(value) else (1, 0.0, str(value))


def with_strips(rows: list[Row]) -> list[Row]:
    """Dots of all seeds over their interval; rows of one metric on one scale, so that they compare by eye."""
    ends: dict[str, list[float]] = {}
    for row in rows:
        some = [v for v in (*row.values, row.mean.low, row.mean.high) if math.isfinite(v)]
        ends.setdefault(row.group.metric + row.group.env, []).extend(some)
    drawn = []
    for row in rows:
        known = ends[row.group.metric + row.group.env]
        text = ""
        if len(known) > 1 and row.mean.n:
            span = max(known) - min(known) or abs(max(known)) or 1.0
            tone, low, high = svg_scale.colour(row.group.place), min(known) - span / 50, max(known) + span / 50
            text = svg_small.dots(row.values, low, high, [row.mean.mid, row.mean.low, row.mean.high], tone)
        drawn.append(Row(**{**vars(row), "strip": Markup(text)}))
    return drawn
