"""What does every page of a server share? The folder, the streams, the process that examines, and the token."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relab.base.documents import Document
from relab.health import onsets
from relab.health.onsets import Since
from relab.web import render
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

    def __post_init__(self) -> None:
        self.watcher = Watcher(self.shelf, self.live, self.desk, self.webhook)

    def close(self) -> None:
        self.live.end()
        self.watcher.stop()
        self.desk.close()
        self.shelf.close()

    def findings_of(self, names: set[str], labels: set[str]) -> list[Document]:
        """What examine said about some runs, or about their group: a card for each rule, which names the other runs."""
        cards: dict[str, Document] = {}
        for finding in self.watcher.health.findings:
            if finding.get("run") in names or finding["where"] in labels:
                card = cards.setdefault(finding["slug"], {**finding, "others": []})
                if card["where"] != finding["where"]:
                    card["others"].append(finding)
        return [card | {"since": since(card, len(names))} for card in cards.values()]


def since(card: Document, runs: int, unit: str = "seeds") -> Since | None:
    """When what a card tells began, in the first of the runs that it names; chart and card say the same."""
    dated = [(str(f["where"]), f["onset"]["step"]) for f in (card, *card["others"]) if f.get("onset")]
    return onsets.earliest(dated, runs, unit)


def of(request: Request) -> Bench:
    bench = request.app.state.bench
    assert isinstance(bench, Bench)
    return bench


def html(request: Request, template: str, status: int = 200, **content: Any) -> Response:
    return HTMLResponse(render.page(template, **frame(request), **content), status)


def frame(request: Request) -> dict[str, Any]:
    """What stands around every page."""
    bench = of(request)
    return {"token": bench.token, "root": bench.root.name or str(bench.root), "here": request.url.path,
            "watching": bench.watcher.health, "progress": bench.shelf.progress,
            "colours": " ".join(render.svg_scale.COLOURS)}  # fmt: skip
