"""What does every page of a server share? The folder, the streams, the process that examines, and the token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.documents import Document
from relab.formats.read.source import Source
from relab.formats.read.stamps import stamp_of
from relab.runs.seeds import SeedGroup
from relab.web import cards, render
from relab.web.desk import Desk
from relab.web.live import Live
from relab.web.shelf import Shelf
from relab.web.undo import Undo
from relab.web.watching import Watcher
from relab.web.webhook import Webhook


@dataclass
class Bench:
    """All of it."""

    root: Path
    token: str
    shelf: Shelf
    queue: Path
    webhook: Webhook | None = None
    live: Live = field(default_factory=Live)
    desk: Desk = field(default_factory=Desk)
    undo: Undo = field(default_factory=Undo)
    watcher: Watcher = field(init=False)
    _answers: dict[str, tuple[Any, Future[Any]]] = field(default_factory=dict)
    _said: dict[str, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.watcher = Watcher(self.shelf, self.live, self.desk, self.webhook)

    def once(self, question: Callable[..., Any], sources: Sequence[Source], *files: Path) -> Future[Any]:
        """What the desk says about these runs; asked again only when a file of theirs, or one of these, has changed."""
        stamp = (tuple(stamp_of(source) for source in sources), tuple(map(_time, files)))
        fresh: Future[Any] | None = None
        with self._lock:
            known = self._answers.get(question.__name__)
            if known is None or known[0] != stamp or (known[1].done() and known[1].exception() is not None):
                known = self._answers[question.__name__] = stamp, self.desk.ask(question, str(self.root), sources)
                fresh = known[1]
        if fresh is not None:  # outside of the lock: an answer may be there already
            fresh.add_done_callback(partial(self._keep, question.__name__))
        return known[1]

    def said(self, question: Callable[..., Any]) -> Any:
        """The last answer that was given to it; None before the first. Nobody waits for it."""
        with self._lock:
            return self._said.get(question.__name__)

    def _keep(self, question: str, answer: Future[Any]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            with self._lock:
                self._said[question] = answer.result()

    def close(self) -> None:
        self.live.end()
        self.watcher.stop()
        self.desk.close()
        self.shelf.close()

    def findings_of(self, groups: Sequence[SeedGroup], names: set[str] | None = None) -> list[Document]:
        """What examine said about some groups, or about those of their runs that are named."""
        return cards.of_groups(self.watcher.health.findings, groups, names)


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def of(request: Request) -> Bench:
    bench = request.app.state.bench
    assert isinstance(bench, Bench)
    return bench


def html(request: Request, template: str, status: int = 200, **content: Any) -> Response:
    return HTMLResponse(render.page(template, **frame(request), **content), status)


def frame(request: Request) -> dict[str, Any]:
    """What stands around every page."""
    bench = of(request)
    return {"token": bench.token, "root": bench.root.name or str(bench.root), "root_path": str(bench.root),
            "here": request.url.path,
            "watching": bench.watcher.health, "version": bench.watcher.version, "progress": bench.shelf.progress,
            "colours": " ".join(render.svg_scale.COLOURS)}  # fmt: skip
