"""The page of a group of seeds, or of one run: did it learn, what is wrong and since when, and everything it logged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.documents import Document
from relab.base.errors import UserError
from relab.base.places import address
from relab.base.text import duration, figure, number
from relab.config.views import MISSING, diff, flatten
from relab.notebook import log
from relab.notebook.log import Logged
from relab.record import glossary
from relab.record.bounds import of_outcome, with_error
from relab.record.clock import elapsed
from relab.record.evaluations import episodes
from relab.record.history import History
from relab.record.state import steps_of
from relab.report import curves, first, sections, svg_scale, svg_small, tables, words
from relab.report.changes import base_of
from relab.report.parts import PageHealth, Section
from relab.runs import moves
from relab.runs.grouping import Group, Run, shown
from relab.runs.listing import ListedRun
from relab.runs.seeds import SeedGroup
from relab.runs.sentences import verdict_words
from relab.runs.verdict import is_return
from relab.web import bench as benches
from relab.web import drawings, films, names
from relab.web.bench import Bench
from relab.web.pages import notebook

LEAD_METRICS = 8  # charts that are open from the beginning
FEW_METRICS = 13  # of which all are
EPISODES = 40  # evaluations that are drawn episode by episode
EVALUATED = 12  # runs of a group whose episodes are drawn
MODES = {"det": "deterministic actions", "sampled": "sampled actions"}


@dataclass(frozen=True)
class SeedRow:
    """One run in the table of seeds."""

    name: str
    called: str
    state: str
    verdict: str
    last: str
    best: str
    at: str  # step of the best
    steps: int
    took: str


@dataclass(frozen=True)
class EvalPicture:
    """The evaluations of a run, episode by episode."""

    called: str
    how: str
    picture: Markup
    step: object  # of the last one
    episodes: list[Document]  # of the last one


@dataclass(frozen=True)
class Setting:
    """A setting, where it came from, and what the parent (or the preset) has."""

    key: str
    value: str
    origin: str
    before: str
    differs: bool


@dataclass(frozen=True)
class Labelled:
    """What people said about the runs of a page, and what may be done with them."""

    star: bool
    tags: list[str]
    note: str  # that all have
    archived: bool
    ours: bool  # folders of relab's, which may be moved

    @classmethod
    def of(cls, runs: Sequence[ListedRun]) -> Labelled:
        tags = sorted({tag for run in runs for tag in run.tags})
        note = runs[0].note if len({run.note for run in runs}) == 1 else ""
        star, archived = any(run.star for run in runs), any(run.archived for run in runs)
        return cls(star, tags, note, archived, all(run.format == "relab" for run in runs))


@dataclass(frozen=True)
class MetricName:
    """A metric that can be drawn."""

    name: str
    title: str
    meaning: str
    family: str
    lead: bool


def page(request: Request) -> Response:
    """/group/KEY"""
    bench = benches.of(request)
    return _page(request, bench, bench.shelf.group(request.path_params["key"]), None)


def run_page(request: Request) -> Response:
    """/run/NAME"""
    bench = benches.of(request)
    listed = bench.shelf.listed(request.path_params["name"])
    return _page(request, bench, bench.shelf.group_of(listed.name), listed.name)


def _page(request: Request, bench: Bench, group: SeedGroup, only: str | None) -> Response:
    listed = [run for run in group.runs if only is None or run.name == only]
    loaded = bench.shelf.loaded(group, listed)
    runs, called = loaded.runs, names.called(loaded.runs)
    return benches.html(
        request, "group.html", group=group, only=only, listed=listed, labels=Labelled.of(listed),
        first=first.first(bench.root / "-", [loaded], []),
        outcome=sections.outcome(loaded), strip=strip(loaded, group.place),
        seeds=[_seed(run, called[run.name]) for run in runs],
        findings=bench.findings_of([group], {run.name for run in listed} if only else None), metrics=metrics(runs),
        settings=settings(runs[0]), pictured=EVALUATED, held=held_against(runs[0]), films=films.of_runs(runs),
        filmable=(runs[0].history.folder / "checkpoints").is_dir(),
        evaluations=evaluations(loaded, called, group.place),
        commands=sections.commands(runs[0].history.folder, [loaded]), parent=runs[0].history.meta.get("parent"),
        source="&".join(f"r={quoted(run.name)}" for run in listed) if only else f"g={group.key}",
        live=any(run.state == "running" for run in listed), entries=entries(bench, listed),
        addresses=[address(run.folder) for run in listed], log=address(bench.root / "LOG.md"),
    )  # fmt: skip


def entries(bench: Bench, listed: Sequence[ListedRun]) -> list[Logged]:
    """What the log says about these runs, or about the experiment that they belong to; newest first."""
    homes = {home.name for run in listed if (home := moves.experiment_of(run.folder)) is not None}
    names = {run.folder.name for run in listed} | homes
    try:
        every = log.entries(notebook.logs_of(bench.root))
    except (UserError, OSError):  # a log with damaged marks: its own page says so
        return []
    return [entry for entry in reversed(every) if str(entry.facts.get("name")) in names][:3]


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def details(request: Request) -> Response:
    """The report's own folded sections about these runs, made when somebody opens them."""
    bench = benches.of(request)
    if key := request.query_params.get("g"):
        group = bench.shelf.group(key)
        loaded = bench.shelf.loaded(group)
    else:
        listed = bench.shelf.listed(request.query_params.get("r", ""))
        loaded = bench.shelf.loaded(bench.shelf.group_of(listed.name), [listed])
    return HTMLResponse(benches.render.page("details.html", parts=folded(loaded)))


def folded(group: Group) -> list[Section]:
    """As the report has them, but for what this page shows already."""
    unasked = PageHealth(False, [], [])
    parts = tables.sections([group], unasked, full=False)
    return [part for part in parts if part.title not in ("Health", "Curves")]


def strip(group: Group, place: int) -> Markup:
    """The seeds as dots over their interval."""
    outcome = sections.outcome(group)
    known = [v for v in (*outcome.values, *outcome.ends) if math.isfinite(v)]
    if len(known) < 2:
        return Markup("")
    span = max(known) - min(known) or abs(max(known)) or 1.0
    low, high = min(known) - span / 50, max(known) + span / 50
    return Markup(svg_small.dots(outcome.values, low, high, outcome.ends, svg_scale.colour(place)))


def _seed(run: Run, called: str) -> SeedRow:
    last = run.verdict.points[-1] if run.verdict.points else None
    limits = of_outcome(run.history, run.verdict.metric)
    known = last is not None and math.isfinite(last.se) and last.se > 0
    error = with_error(last.mean, last.se, limits, lambda x: figure(x, 2)) if last is not None and known else ""
    best = run.verdict.peak
    return SeedRow(
        run.name, called, run.state, verdict_words(run.verdict),
        number(last.mean) + error if last is not None else "none",
        number(best.mean) if best is not None else "none",
        f"{best.step:,}" if best is not None else "",
        steps_of(run.history), _took(run.history),
    )  # fmt: skip


def metrics(runs: Sequence[Run]) -> list[MetricName]:
    """All metrics that any of the runs logged: what they are judged by first, then those that tell most."""
    names = dict.fromkeys(name for run in runs for name in run.history.columns)
    judged = curves.lead_metric(list(runs))
    known = [name for name in (judged, *tables.CORE) if name in names or name == judged]
    order = [name for name in dict.fromkeys([*known, *sorted(names, key=_quiet)]) if name]
    telling = dict.fromkeys([*known, *(name for name in order if is_return(name)), *order])
    leads = set([*telling][: FEW_METRICS if len(order) <= FEW_METRICS else LEAD_METRICS])
    return [
        MetricName(
            name, words.metric(name), glossary.metric(name).meaning if glossary.known(name) else "",
            name.partition("/")[0] if "/" in name else "other", name in leads,
        )
        for name in order
    ]  # fmt: skip


def _quiet(name: str) -> tuple[bool, bool, str]:
    return name.startswith("time/"), name.startswith("data/"), name


def held_against(run: Run) -> str:
    base = base_of(run.history)
    return base.kind if base is not None else ""


def settings(run: Run) -> list[Setting]:
    """Every setting with its origin, those that differ from the parent (else from relab's preset) first."""
    flat, base = flatten(run.history.config), base_of(run.history)
    every = diff(base.settings, run.history.config) if base is not None else []
    unknown = base is not None and base.kind == "preset"  # of a record that is older than a setting, nothing is known
    changes = {change.key: change for change in every if not (unknown and change.key not in flat)}
    keys = [*dict.fromkeys([*changes, *flat])]
    made = []
    for key in keys:
        before = shown(changes[key].a) if key in changes else ""
        origin = str(run.history.provenance.get(key, ""))
        made.append(Setting(key, shown(flat.get(key, MISSING)), origin, before, key in changes))
    return made


def evaluations(group: Group, called: Mapping[str, str], place: int) -> list[EvalPicture]:
    """For each run its evaluations in the mode that it is judged by, every episode a dot, and those of the last one."""
    made = []
    for run in group.runs[:EVALUATED]:
        rows = [row for row in run.history.evals if row.get("mode") in (None, "det", "sampled")]
        modes = [row.get("mode") for row in rows]
        mode = "det" if "det" in modes else modes[-1] if modes else None
        rows = [row for row in rows if row.get("mode") == mode]
        dots = [(row.get("step"), _returns(row)) for row in spread(rows, EPISODES)]
        if rows:
            picture = Markup(drawings.episodes(dots, place, curves.possible("eval/return_det", [run])))
            how, step = MODES.get(str(mode), ""), rows[-1].get("step")
            made.append(EvalPicture(called[run.name], how, picture, step, _episodes(rows[-1])))
    return made


def spread(rows: Sequence[Document], most: int) -> list[Document]:
    """No more than that many, from the first to the last."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def _returns(row: Document) -> list[float]:
    return [float(e["return"]) for e in _episodes(row) if isinstance(e.get("return"), (int, float))]


def _episodes(row: Document) -> list[Document]:
    try:
        return [dict(each) for each in episodes(row)]
    except ValueError:
        return []


def _took(history: History) -> str:
    """Empty where the log has no clock."""
    seconds = elapsed(history)
    return duration(seconds) if math.isfinite(seconds) else ""
