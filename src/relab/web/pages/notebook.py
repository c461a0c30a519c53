"""The page of the log: entries and a search in them, numbers that went stale, experiments, and what is proposed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.documents import Document
from relab.base.enclosed import inside
from relab.base.errors import NotFoundError, UserError
from relab.base.jsonl import RecordError, read_json
from relab.base.places import address
from relab.config.base import require
from relab.notebook import log
from relab.notebook.log import Logged
from relab.notebook.search import Hit, search
from relab.record.run_folder import now
from relab.runs import moves
from relab.web import advising, loops, prose, remembered, render
from relab.web import bench as benches
from relab.web.bench import Bench
from relab.web.desk import named
from relab.web.query import split
from relab.web.remembered import Decision
from relab.web.watching import examinable

SHOWN = 50
MOST_COMPARED = 40  # groups of an experiment that a link names
LONGEST = 2000  # characters of a rationale
DECIDED = 20  # proposals whose fate is told
STATES = {"yes": "yes", "no": "no", "cannot tell yet": "open"}


@dataclass(frozen=True)
class Shown:
    """An entry as the page lays it out."""

    id: str
    title: str
    date: str
    where: str
    verdict: str
    edited: bool
    blocks: list[prose.Block]
    hit: Hit | None = None


@dataclass(frozen=True)
class Experiment:
    """A question, how far it is, and its answer."""

    name: str
    question: str
    state: str
    answers: list[str]
    runs: int
    running: int
    address: str  # where its variants are compared


def page(request: Request) -> Response:
    bench, words = benches.of(request), request.query_params.get("q", "")[:500]
    logs = logs_of(bench.root)
    try:
        entries, problem = shown(logs, split(words), bench.root), ""
    except (UserError, OSError) as error:
        entries, problem = [], str(error)
    return benches.html(request, "notebook.html", q=words, logs=[path.name for path in logs], entries=entries[:SHOWN],
                        left=max(len(entries) - SHOWN, 0), problem=problem, into=address(bench.root / "LOG.md"),
                        experiments=experiments(bench))  # fmt: skip


def logs_of(root: Path) -> list[Path]:
    """The usual logs below the folder; one that leads out of it is none."""
    made = []
    for path in log.default_logs(root):
        try:
            inside(root, str(path.relative_to(root)))
            made.append(path)
        except RecordError:
            continue
    return made


def shown(logs: Sequence[Path], words: Sequence[str], root: Path) -> list[Shown]:
    """Newest first, a person's own text as well; with words, what holds all of them."""
    if words:
        return [_shown(hit.entry, root, hit) for hit in reversed(search(logs, list(words)))]
    return [_shown(entry, root) for entry in reversed(log.everything(logs))]


def _shown(entry: Logged, root: Path, hit: Hit | None = None) -> Shown:
    file = entry.path.relative_to(root) if entry.path.is_relative_to(root) else entry.path
    return Shown(entry.id, entry.title or file.name, entry.date, f"{file}:{entry.line}", entry.verdict, entry.edited,
                 prose.blocks(entry.text)[1:] if entry.title else prose.blocks(entry.text), hit)  # fmt: skip


def experiments(bench: Bench) -> list[Experiment]:
    homes: dict[Path, list[str]] = {}
    keys: dict[Path, dict[str, None]] = {}
    known: dict[str, Path | None] = {}
    for group in bench.shelf.every():
        for run in group.runs:
            above = run.path.rpartition(os.sep)[0]
            if run.format == "relab" and above not in known:  # once for all runs that lie beside each other
                known[above] = moves.experiment_of(run.folder)
            if run.format == "relab" and (home := known[above]) is not None:
                homes.setdefault(home, []).append(run.state)
                keys.setdefault(home, {})[group.key] = None
    made = []
    for home, states in sorted(homes.items())[:200]:
        try:
            body = read_json(home, "answer.json")
        except (RecordError, OSError):
            body = {}
        answers = [each for each in body.get("answers", ()) if isinstance(each, dict)]
        verdicts = {STATES.get(str(each.get("verdict")), "open") for each in answers}
        state = "running" if "running" in states else "/".join(sorted(verdicts)) or "no answer yet"
        texts = [str(each.get("text") or "") for each in answers]
        where = render.address("/compare", g=[*keys[home]]) if 1 < len(keys[home]) <= MOST_COMPARED else ""
        made.append(
            Experiment(
                home.name, str(body.get("question") or ""), state, texts, len(states), states.count("running"), where
            )
        )
    return made


async def more(request: Request) -> Response:
    """Stale numbers and proposals, which another process works out."""
    bench = benches.of(request)
    made = await run_in_threadpool(examinable, bench.shelf)
    many = 0 if made else sum(len(group.runs) for group in bench.shelf.every())
    logs = [str(path) for path in logs_of(bench.root)]
    decided = remembered.read(bench.root).decided
    files = [Path(each) for each in logs]
    advice = await asyncio.wrap_future(bench.once(advising.advice, made, *files)) if made else []
    stale = await asyncio.wrap_future(bench.desk.ask(advising.stale, str(bench.root), logs)) if logs else []
    folders = loops.homes(run for group in bench.shelf.every() for run in group.runs)
    standing = (
        await asyncio.wrap_future(bench.desk.ask(named, loops.STANDING, str(bench.root), folders)) if folders else []
    )
    waiting = [each for each in advice if each["id"] not in decided]
    last = [*reversed(decided.values())][:DECIDED]
    return HTMLResponse(
        render.page(
            "notebook_more.html",
            proposals=waiting,
            many=many,
            decided=last,
            stale=stale,
            logs=logs,
            root=bench.root,
            loops=standing,
        )
    )


# ---- Deciding


def approve(bench: Bench, body: Document) -> str:
    """Write next_config.yaml, as it is or edited; with `queue` its run waits in the queue."""
    edits = body.get("edits") or {}
    require(isinstance(edits, dict) and all(isinstance(v, str) for v in edits.values()), "`edits` maps keys to texts")
    queue = str(bench.queue) if body.get("queue") is True else None
    wanted = str(body.get("id") or "")
    home, runs = str(_made(bench, wanted)["home"]), examinable(bench.shelf)
    answer = bench.desk.ask(advising.approve, str(bench.root), runs, home, wanted, edits, queue)
    done: advising.Approved = answer.result()
    _decide(bench, Decision(wanted, remembered.APPROVED, done.title, done.text, now()))

    def back() -> None:
        advising.take_back(done, str(bench.queue))
        _forget(bench, wanted)

    bench.undo.did(f"approved {done.title}", back)
    return done.text


def refuse(bench: Bench, body: Document) -> str:
    """A proposal that no longer waits; it can be taken back."""
    wanted = str(body.get("id") or "")[:40]
    require(bool(wanted), "which proposal?")
    title = str(_made(bench, wanted)["title"])
    _decide(bench, Decision(wanted, remembered.REJECTED, title, "no longer shown as waiting", now()))
    bench.undo.did(f"rejected {title}", lambda: _forget(bench, wanted))
    return f"rejected: {title}"


def drop(bench: Bench, body: Document) -> str:
    """A change for a loop to take, where it would run it."""
    values = body.get("values") or {}
    require(
        isinstance(values, dict) and all(isinstance(v, str) for v in values.values()), "`values` maps keys to texts"
    )
    rationale = str(body.get("rationale") or "")[:LONGEST]
    return _changed(
        bench, bench.desk.ask(named, loops.DROP, str(bench.root), _loop(bench, body), values, rationale).result()
    )


def withdraw(bench: Bench, body: Document) -> str:
    """What waits for a loop no longer does."""
    return _changed(bench, bench.desk.ask(named, loops.WITHDRAW, str(bench.root), _loop(bench, body)).result())


def _loop(bench: Bench, body: Document) -> Path:
    """The loop of this name, from the list of those that are there."""
    wanted = str(body.get("loop") or "")
    for home in loops.homes(run for group in bench.shelf.every() for run in group.runs):
        if home.relative_to(bench.shelf.root).as_posix() == wanted:
            return home
    raise NotFoundError("there is no such loop here any more")


def _changed(bench: Bench, done: Document) -> str:
    bench.undo.did(str(done["text"]), lambda: loops.take_back(done))
    return str(done["text"])


def _made(bench: Bench, wanted: str) -> Document:
    """A proposal as a page showed it last; of a page that is older than the server, all are made anew."""
    advice = bench.said(advising.advice)
    if advice is None:
        advice = bench.once(advising.advice, examinable(bench.shelf), *logs_of(bench.root)).result()
    for one in advice:
        if wanted and one["id"] == wanted:
            return one
    raise NotFoundError(advising.GONE)


def _forget(bench: Bench, wanted: str) -> None:
    kept = remembered.read(bench.root)
    kept.decisions = kept.without(wanted)
    remembered.write(bench.root, kept)


def _decide(bench: Bench, decision: Decision) -> None:
    seen = remembered.read(bench.root)
    seen.decisions = [*seen.without(decision.id), decision]
    remembered.write(bench.root, seen)
