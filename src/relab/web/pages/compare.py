"""The page of a comparison: which config is better, how sure, what differs, and why something cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.places import address
from relab.comparison.outcomes import AT
from relab.comparison.task import Options
from relab.config.base import require
from relab.report import render as report
from relab.report import sweep_page
from relab.runs.seeds import SeedGroup
from relab.web import bench as benches
from relab.web import comparing, render
from relab.web.bench import Bench
from relab.web.watching import sources

FEW = 12  # groups that are compared when nobody has chosen
MOST_RUNS, MOST_LISTED = 400, 300


def page(request: Request) -> Response:
    """/compare?g=KEY&g=KEY"""
    bench = benches.of(request)
    every = [group for group in bench.shelf.every() if not group.runs[0].archived]
    chosen = chosen_of(bench, request.query_params, every)
    source = "&".join(f"g={group.key}" for group in chosen)
    options = {key: request.query_params.get(key, "") for key in ("metric", "at", "by")}
    return benches.html(
        request, "compare.html", tasks=by_env(every[:MOST_LISTED]), hidden=max(len(every) - MOST_LISTED, 0),
        chosen=chosen, keys={g.key for g in chosen}, source=source, ways=AT, options=options, query=request.url.query,
        total=len(every), findings=bench.findings_of(chosen),
    )  # fmt: skip


def chosen_of(bench: Bench, params: QueryParams, every: Sequence[SeedGroup]) -> list[SeedGroup]:
    """Those in the address; else the groups of the environment that has the most, as far as they are few."""
    if keys := params.getlist("g"):
        return [bench.shelf.group(key) for key in dict.fromkeys(keys)]
    tasks: dict[tuple[str, str], list[SeedGroup]] = {}
    for group in every:
        if group.metric:
            tasks.setdefault((group.env, group.metric), []).append(group)
    most = max(tasks.values(), key=len, default=[])
    return _best_known(most)[:FEW] if len(most) > 1 else []


def _best_known(groups: Sequence[SeedGroup]) -> list[SeedGroup]:
    """Those with the most seeds first, where not all can be chosen; in the order of the folder."""
    kept = sorted(groups, key=lambda group: -len(group.distinct))[:FEW]
    return [group for group in groups if group in kept]


def by_env(groups: Sequence[SeedGroup]) -> list[tuple[str, list[SeedGroup]]]:
    """The groups to choose from under their environments; only within one can they be compared."""
    parts: dict[str, list[SeedGroup]] = {}
    for group in groups:
        parts.setdefault(group.env, []).append(group)
    return list(parts.items())


async def result(request: Request) -> Response:
    """The comparison itself, which another process works out."""
    bench, params = benches.of(request), request.query_params
    groups = await run_in_threadpool(_groups, bench, params)
    runs = [run for group in groups for run in group.runs]
    require(len(groups) > 1, "choose two groups or more")
    require(len(runs) <= MOST_RUNS, f"at most {MOST_RUNS} runs are compared here; `relab compare` takes any number")
    made = await run_in_threadpool(sources, bench.shelf, runs)
    place = {run.folder: group.place for group in groups for run in group.runs}
    answer = bench.desk.ask(
        comparing.compared, str(bench.root), made, [place[source.path] for source in made], options_of(params)
    )
    import asyncio

    document = await asyncio.wrap_future(answer)
    swept = await run_in_threadpool(sweep_of, groups)
    maps = report.sweep_figures(swept)
    return HTMLResponse(
        render.page("compared.html", result=document, sweep=swept, maps=maps, command=command(bench, groups))
    )


def _groups(bench: Bench, params: QueryParams) -> list[SeedGroup]:
    every = [group for group in bench.shelf.every() if not group.runs[0].archived]
    return chosen_of(bench, params, every)


def options_of(params: QueryParams) -> Options:
    metric, at, by = (params.get(key, "")[:200] or None for key in ("metric", "at", "by"))
    options = Options(by, metric, at)
    require(options.at is None or options.at in AT, f"`at` must be one of {', '.join(AT)}")
    return options


def sweep_of(groups: Sequence[SeedGroup]) -> sweep_page.SweepPage | None:
    """What the sweep says whose trials these groups are."""
    folders = {run.folder.parent for group in groups for run in group.runs}
    return sweep_page.build(folders.pop()) if len(folders) == 1 else None


def command(bench: Bench, groups: Sequence[SeedGroup]) -> str:
    """The same in a terminal."""
    every = {group.key for group in bench.shelf.every() if not group.runs[0].archived}
    if every == {group.key for group in groups}:
        return f"relab compare {address(bench.root)}"
    folders = [run.folder for group in groups for run in group.runs]
    return " ".join(["relab compare", *map(address, folders[:40]), *(["..."] if len(folders) > 40 else [])])
