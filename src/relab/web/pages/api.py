"""What do charts ask for? Rows of a metric at the resolution of a screen, as JSON; all as CSV; a drawing as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import orjson
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from relab.base.documents import Document
from relab.config.base import require
from relab.report import curves, svg
from relab.runs.grouping import Group
from relab.web import bench as benches
from relab.web import charts, live, render
from relab.web.bench import Bench

MOST_GROUPS, MOST_RUNS = 40, 200
JSON = "application/json"
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def curve(request: Request) -> Response:
    """A chart as JSON; NaN is null."""
    bench, view = benches.of(request), view_of(request.query_params)
    groups = selection(bench, request.query_params)
    shown = charts.chart(groups, view)
    runs = [run for group, _ in groups for run in group.runs]
    body = shown.to_json() | {"marks": [vars(mark) for mark in charts.marks(runs, view.x)]}
    body["findings"] = onsets(bench, request.query_params, groups, view.x)
    return Response(orjson.dumps(body, option=OPTIONS), media_type=JSON)


def table(request: Request) -> Response:
    """All rows of a chart as CSV, within the stretch that it shows."""
    view = view_of(request.query_params)
    groups = selection(benches.of(request), request.query_params)
    text = charts.csv(charts.chart(groups, view), groups, view)
    return Response(text, media_type="text/csv; charset=utf-8", headers=download("curve.csv"))


def figure(request: Request) -> Response:
    """The same picture as in the report, as SVG."""
    params = request.query_params
    groups = [group for group, _ in selection(benches.of(request), params)]
    view = view_of(params)
    look = svg.Look(view.x if view.x in ("steps", "updates", "time") else "steps", view.log_x, params.get("log") == "1")
    drawn = svg.curve(curves.curve(groups, view.metric), view=look)
    text = render.drawn(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return Response(text, media_type="image/svg+xml", headers=download("curve.svg"))


def download(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def view_of(params: QueryParams) -> charts.ChartView:
    return charts.ChartView(
        params.get("metric", "")[:500], params.get("x", "steps")[:20], _number(params, "from"), _number(params, "to"),
        int(_number(params, "width") or 900), min(max(_number(params, "smooth") or 0.0, 0.0), 1e6),
        params.get("logx") == "1",
    )  # fmt: skip


def _number(params: QueryParams, name: str) -> float | None:
    text = params.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), f"`{name}` must be a number, but is {text!r:.40}")
    return value


def selection(bench: Bench, params: QueryParams) -> list[tuple[Group, int]]:
    """Groups (g) and single runs (r) of an address, read; each with its place among all, which is its colour."""
    keys, names = params.getlist("g"), params.getlist("r")
    require(bool(keys or names), "name at least one group (g) or run (r)")
    require(len(keys) <= MOST_GROUPS and len(names) <= MOST_RUNS, f"at most {MOST_GROUPS} groups at a time")
    chosen = []
    for key in keys:
        group = bench.shelf.group(key)
        require(len(group.runs) <= MOST_RUNS, f"a chart shows at most {MOST_RUNS} runs, but {group.label} has more")
        chosen.append((bench.shelf.loaded(group), group.place))
    for name in names:
        group = bench.shelf.group_of(bench.shelf.listed(name).name)
        chosen.append((bench.shelf.loaded(group, [bench.shelf.listed(name)]), group.place))
    return chosen


def onsets(bench: Bench, params: QueryParams, groups: Sequence[tuple[Group, int]], x: str) -> list[Document]:
    """Where findings began, on the axis that is shown; `number` is that of its card on the page."""
    runs = {run.name: run for group, _ in groups for run in group.runs}
    made = []
    for place, card in enumerate(cards_of(bench, params)):
        began = card["since"]
        if began is None or not began.marked or began.run not in runs:
            continue
        step, run = began.step, runs[began.run]
        at = float(step) if x == "steps" else float(charts.along(run.history, np.array([step]), x)[0])
        made.append({"x": at, "slug": card["slug"], "severity": card["severity"], "run": run.name, "number": place})
    return made


def cards_of(bench: Bench, params: QueryParams) -> list[Document]:
    """The findings of the groups (g) or runs (r) of an address, in the order of their cards."""
    listed = [bench.shelf.listed(name) for name in params.getlist("r")[:MOST_RUNS]]
    homes = [bench.shelf.group_of(run.name) for run in listed]
    groups = [bench.shelf.group(key) for key in params.getlist("g")[:MOST_GROUPS]]
    every = {group.key: group for group in (*groups, *homes)}
    return bench.findings_of(list(every.values()), {run.name for run in listed} if listed and not groups else None)


def findings(request: Request) -> Response:
    """The cards alone, for a page that is open when they change."""
    several = len(request.query_params.getlist("g")) > 1
    cards = cards_of(benches.of(request), request.query_params)
    return benches.html(request, "findings.html", findings=cards, where=several)


async def stream(request: Request) -> Response:
    """Events for a page; it says which runs it shows."""
    bench = benches.of(request)
    names = request.query_params.getlist("r")[:MOST_RUNS]
    for key in request.query_params.getlist("g")[:MOST_GROUPS]:
        group = await run_in_threadpool(bench.shelf.group, key)
        names += [run.name for run in group.runs[:MOST_RUNS]]
    joined = bench.live.join(names)
    if joined is None:
        return PlainTextResponse("as many pages listen as may; close one", 503, {"Retry-After": "10"})
    if bench.watcher.version:  # what was read before it listened; a page that has it already takes no notice
        news = {"changed": [], "gone": [], "runs": 0, "version": bench.watcher.version}
        bench.live.greet(joined, "runs", news)
    bench.live.greet(joined, "findings", {"version": bench.watcher.health.version, "new": []})
    return StreamingResponse(live.events(bench.live, joined), media_type="text/event-stream",
                             headers={"X-Accel-Buffering": "no"})  # fmt: skip
