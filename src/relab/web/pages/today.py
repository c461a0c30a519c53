"""The page of the day: what ended, died or went stale since the last look, what was found, what waits for an answer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.text import duration
from relab.record.run_folder import now
from relab.runs import moves
from relab.runs.glance import utc
from relab.runs.listing import ListedRun
from relab.runs.naming import task_names
from relab.runs.seeds import SeedGroup
from relab.web import advising, cards, machine, remembered, render
from relab.web import bench as benches
from relab.web.bench import Bench
from relab.web.pages import notebook
from relab.web.watching import examinable

DAY_S, SHOWN = 86_400.0, 30
ENDS = {
    "finished": "finished",
    "ended": "ended",
    "failed": "died",
    "stale": "stale",
    "interrupted": "interrupted",
}
ORDER = ("died", "stale", "interrupted", "finished", "ended")


@dataclass(frozen=True)
class Ended:
    """A group some of whose runs ended since the last look: how, when, and what the group has come to."""

    group: SeedGroup
    counts: list[tuple[str, str, int]]  # word, state, how many
    at: float
    problem: str

    @property
    def address(self) -> str:
        return address_of(self.group)


@dataclass(frozen=True)
class Question:
    """An experiment that has no answer yet, what it waits for and what that costs."""

    name: str
    text: str
    question: str
    seeds: str
    cost: str


def page(request: Request) -> Response:
    bench = benches.of(request)
    since = _since(bench)
    groups = [group for group in bench.shelf.every() if not group.runs[0].archived]
    runs = [run for group in groups for run in group.runs]
    health = bench.watcher.health
    marked = bool(health.document and health.document["since"])
    every = cards.of_all(health.findings, groups)
    new = cards.of_all([f for f in health.findings if f.get("new")], groups) if marked else every
    ended = ends(groups, since)
    return benches.html(
        request, "today.html", runs=len(runs), running=going(groups), ended=ended[:SHOWN],
        more=max(len(ended) - SHOWN, 0), counts=counted(ended), since=since, seen=remembered.read(bench.root).at,
        findings=new, marked=marked, shown=len(new), every=len(every),
        questions=questions(bench.root, runs), machine=machine.look(bench.root, bench.queue),
    )  # fmt: skip


def address_of(group: SeedGroup) -> str:
    return f"/group/{group.key}" if len(group.runs) > 1 else f"/run/{quote(group.runs[0].name)}"


def going(groups: Sequence[SeedGroup]) -> list[tuple[SeedGroup, ListedRun]]:
    """The runs that train now, with their group."""
    every = [(group, run) for group in groups for run in group.runs if run.state == "running"]
    return every[:SHOWN]


def ends(groups: Sequence[SeedGroup], since: float) -> list[Ended]:
    """Groups with runs that ended since then: those that died first, then the newest."""
    made = []
    for group in groups:
        mine = [run for run in group.runs if run.sign >= since and run.state in ENDS]
        states = Counter(run.state for run in mine)
        counts = [(ENDS[s], s, states[s]) for s in sorted(states, key=lambda s: ORDER.index(ENDS[s]))]
        problem = next((run.problem for run in mine if run.problem), "")
        if mine:
            made.append(Ended(group, counts, max(run.sign for run in mine), problem))
    return sorted(made, key=lambda one: (ORDER.index(one.counts[0][0]), -one.at))


def counted(ended: Sequence[Ended]) -> list[tuple[str, int]]:
    """How many runs finished, died and so on."""
    every: Counter[str] = Counter()
    for one in ended:
        every.update({word: many for word, _, many in one.counts})
    return [(word, every[word]) for word in ORDER if every[word]]


def _since(bench: Bench) -> float:
    """The last look; where there was none, a day ago."""
    return utc(remembered.read(bench.root).at) or time.time() - DAY_S


def questions(root: Path, runs: Sequence[ListedRun]) -> list[Question]:
    """Experiments whose answer is still open, with the seeds that they wait for and what those cost."""
    homes = {
        home for run in runs[:2000] if run.format == "relab" and (home := moves.experiment_of(run.folder)) is not None
    }
    made = []
    for home in sorted(homes):
        try:
            body = read_json(home, "answer.json")
        except (RecordError, OSError):
            continue
        for answer in [each for each in body.get("answers", ()) if isinstance(each, dict)]:
            if answer.get("verdict") == "cannot tell yet":
                made.append(_question(home, str(body.get("question") or ""), answer, runs))
    return made


def _question(home: Path, question: str, answer: Document, runs: Sequence[ListedRun]) -> Question:
    ends = answer.get("seeds_needed")
    have = answer.get("n") or [0, 0]
    seeds, cost = "", ""
    if isinstance(ends, list) and len(ends) == 2 and all(isinstance(each, int) for each in ends):
        seeds = f"{ends[0]} to {ends[1]} seeds a variant; {have[0]} and {have[1]} are there"
        mine = [run.sign - run.created for run in runs if run.folder.is_relative_to(home) and run.created]
        usual = sorted(each for each in mine if each > 0)
        lacking = sum(max(ends[0] - n, 0) for n in have)
        cost = f"at least {lacking} more runs, about {duration(lacking * usual[len(usual) // 2])}" if usual else ""
    return Question(home.name, str(answer.get("text") or ""), question, seeds, cost)


async def more(request: Request) -> Response:
    """What takes longer: which configs can be told apart by now, and which proposals wait."""
    bench = benches.of(request)
    made = await run_in_threadpool(examinable, bench.shelf)
    if not made:
        return HTMLResponse("")
    seen = remembered.read(bench.root)
    pairs, advice = await asyncio.gather(
        asyncio.wrap_future(bench.once(advising.apart, made)),
        asyncio.wrap_future(bench.once(advising.advice, made, *notebook.logs_of(bench.root))),
    )
    shown = [pair | {"new": key_of(pair) not in seen.apart and bool(seen.at), "address": compared_at(bench, pair)}
             for pair in pairs[:20]]  # fmt: skip
    waiting = [each for each in advice if each["id"] and each["id"] not in seen.decided]
    return HTMLResponse(render.page("today_more.html", pairs=shown, proposals=waiting))


def compared_at(bench: Bench, pair: Document) -> str:
    """Where both configs of a pair are compared; empty where their names are not those of one group each."""
    env = str(pair["env"]).casefold()
    groups = [group for group in bench.shelf.every() if group.env.casefold() == env and not group.runs[0].archived]
    names = task_names([group.label for group in groups], pair["env"])
    keys = [next((g.key for g in groups if pair[side] in (g.label, names[g.label])), None) for side in ("b", "a")]
    return render.address("/compare", g=keys) if all(keys) else ""


def key_of(pair: Document) -> str:
    return f"{pair['env']}\n{pair['a']}\n{pair['b']}\n{pair['better']}"


def mark_seen(bench: Bench, body: Document) -> str:
    """All that is shown is old from now on, here and for `relab examine --new`; what was not shown yet stays new."""
    seen = remembered.read(bench.root)
    seen.at = now()
    seen.apart = [key_of(pair) for pair in bench.said(advising.apart) or ()] or seen.apart
    if bench.watcher.health.document is not None:
        seen.look = {key: bench.watcher.health.document["look"][key] for key in ("findings", "runs")}
    bench.watcher.seen(seen.at)
    remembered.write(bench.root, seen)
    return "what is shown counts as seen"
