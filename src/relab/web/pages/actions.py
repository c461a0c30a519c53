"""What may a page change? Labels of runs, the archive, what counts as seen; each with the token, and it can be undone.

The same functions as `relab runs star`, `tag`, `note` and `archive`; other tools' folders are never written to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from relab.base.documents import Document
from relab.base.enclosed import RecordError
from relab.base.text import plural
from relab.config.base import require
from relab.runs import labels, moves
from relab.runs.labels import Labels
from relab.runs.listing import ListedRun
from relab.web import bench as benches
from relab.web.bench import Bench
from relab.web.pages import notebook, today

MOST = 500  # runs that one action changes


async def act(request: Request) -> Response:
    """POST /act/VERB with {runs: [names], groups: [keys], ...} -> {said}"""
    verb = request.path_params["verb"]
    require(verb in VERBS, f"there is no action {verb!r:.40}")
    try:
        body = orjson.loads(await request.body())
    except ValueError:
        body = None
    require(isinstance(body, dict), "an action is a JSON object")
    said = await run_in_threadpool(VERBS[verb], benches.of(request), body)
    benches.of(request).watcher.hurry()
    return JSONResponse({"said": said})


def chosen(bench: Bench, body: Document) -> list[ListedRun]:
    """The runs that an action names, by name or by group."""
    lists = [body.get(key) or [] for key in ("runs", "groups")]
    require(all(isinstance(each, list) for each in lists), "runs and groups must be lists of names")
    names, keys = ([str(name) for name in each] for each in lists)
    runs = [bench.shelf.listed(name) for name in names[:MOST]]
    runs += [run for key in keys[:MOST] for run in bench.shelf.group(key).runs]
    require(bool(runs), "name at least one run or group")
    require(len(runs) <= MOST, f"one action changes at most {MOST} runs, but {len(runs)} are named")
    return runs


def star(bench: Bench, body: Document) -> str:
    yes = body.get("on") is True
    runs = chosen(bench, body)
    return _label(bench, runs, labels.starred(yes), f"{'starred' if yes else 'unstarred'} {called(runs)}")


def tag(bench: Bench, body: Document) -> str:
    words = [word for word in str(body.get("tag", "")).replace(",", " ").split() if word]
    require(bool(words), "a tag is a word")
    add, runs = body.get("on") is not False, chosen(bench, body)
    said = f"{'tagged' if add else 'untagged'} {called(runs)}: {' '.join(words)}"
    return _label(bench, runs, labels.tagged(words, add), said)


def note(bench: Bench, body: Document) -> str:
    runs = chosen(bench, body)
    return _label(bench, runs, labels.noted(str(body.get("text", ""))), f"noted for {called(runs)}")


def _label(bench: Bench, runs: list[ListedRun], change: Callable[[Labels], Labels], said: str) -> str:
    before: list[tuple[ListedRun, Labels]] = []

    def keep(run: ListedRun) -> Callable[[Labels], Labels]:
        def changed(old: Labels) -> Labels:
            before.append((run, old))
            return change(old)

        return changed

    for run in runs:
        relabel(run, keep(run))

    def back() -> None:
        for run, old in before:
            relabel(run, _as_before(old))

    bench.undo.did(said, back)
    return said


def _as_before(old: Labels) -> Callable[[Labels], Labels]:
    return lambda now: replace(now, tags=old.tags, star=old.star, note=old.note)


def relabel(run: ListedRun, change: Callable[[Labels], Labels]) -> None:
    if run.format == "relab":
        moves.relabel(run.folder, change)
    else:
        moves.relabel_foreign(run.folder, run.key, change)


def archive(bench: Bench, body: Document) -> str:
    """Out of sight, into .archive beside it; undo brings it back."""
    runs = chosen(bench, body)
    theirs = [run for run in runs if run.format != "relab"]
    if theirs:
        said = f"{theirs[0].name} was written by another tool ({theirs[0].format})"
        raise RecordError(f"{said}, and relab moves nothing of theirs; tag it instead")
    back = any(run.archived for run in runs)
    places = []
    for run in runs:
        moves.run(moves.unarchive(run.folder) if back else moves.archive(run.folder))
        places.append(_place(run.folder, back))
    said = f"{'brought back' if back else 'archived'} {called(runs)}"

    def again() -> None:
        for place in places:
            moves.run(moves.archive(place) if back else moves.unarchive(place))

    bench.undo.did(said, again)
    return said


def _place(folder: Path, back: bool) -> Path:
    """Where a run lies after it was archived, or brought back."""
    return folder.parent.parent / folder.name if back else folder.parent / moves.ARCHIVE / folder.name


def undo(bench: Bench, body: Document) -> str:
    what = bench.undo.take_back()
    return f"taken back: {what}" if what else "there is nothing to take back"


def called(runs: list[ListedRun]) -> str:
    return runs[0].name if len(runs) == 1 else plural(len(runs), "run")


VERBS: dict[str, Callable[[Bench, Document], str]] = {
    "star": star, "tag": tag, "note": note, "archive": archive, "undo": undo,
    "seen": today.mark_seen, "approve": notebook.approve, "refuse": notebook.refuse,
    "drop": notebook.drop, "withdraw": notebook.withdraw,
}  # fmt: skip
