"""What has changed since the last look? Sizes and times of files, asked once a second; findings while runs go on.

Nothing is asked of the runs themselves. A folder of many runs is walked through less often, so that watching takes no
more than a tenth of one core; the files of runs that somebody looks at are looked at every time.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from relab.base import blame
from relab.base.documents import Document
from relab.base.errors import NotFoundError
from relab.formats.read.source import Source
from relab.formats.read.stamps import Stamp, stamp_of
from relab.runs.listing import ListedRun
from relab.runs.seeds import SeedGroup
from relab.web import examining
from relab.web.announced import Announced
from relab.web.desk import Desk
from relab.web.live import Live
from relab.web.shelf import Shelf
from relab.web.webhook import Webhook

PERIOD_S = 1.0
SHARE = 0.1  # of a core that walking through the folders may take
REST_S = 4.0  # after an examination, at least, before the next
IDLE_S = 10.0  # between two walks while nobody looks
LONGEST_S = 30.0  # between two walks, however many runs there are


@dataclass
class Health:
    """What examine said last, or why it has not."""

    document: Document | None = None
    state: str = "examining"  # examining, done, too many, nothing, failed
    why: str = ""
    version: int = 0  # of what was examined

    @property
    def findings(self) -> list[Document]:
        return self.document["findings"] if self.document else []


@dataclass
class Seen:
    """What was there at the last look."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class Watcher:
    """A thread that looks, and tells the pages."""

    def __init__(self, shelf: Shelf, live: Live, desk: Desk, webhook: Webhook | None = None):
        self.shelf, self.live, self.desk, self.webhook = shelf, live, desk, webhook
        self.health = Health()
        self._seen = Seen()
        self._stop, self._due, self._wake = threading.Event(), 0.0, threading.Event()
        self._hurried, self.version = False, 0  # which grows when a run has changed
        self._examining: Future[Any] | None = None
        self._rest_until, self._asked_for = 0.0, -1
        self._announced, self._began = Announced(), False
        self._thread = threading.Thread(target=self._watch, name="relab-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def hurry(self) -> None:
        """Something was changed by a page: look at once, and once more if a look is under way."""
        self._hurried = True
        self._wake.set()

    def seen(self, at: str) -> None:
        """What was said last is old from now on; an examination that is under way counts from the look before."""
        if self.health.document is not None:
            old = examining.seen(str(self.shelf.root), self.health.document, at)
            self.health = replace(self.health, document=old)
            self._asked_for = -1

    # ---- The loop

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except Exception as error:  # a folder that cannot be read now may be readable in a second
                self.live.say("trouble", {"why": blame.reason(error)})
            self._wake.wait(PERIOD_S)
            self._wake.clear()

    def look(self) -> None:
        """One look: rows of the runs on the screens, all runs when it is time, findings when something changed."""
        self.look_at_rows()
        now = time.monotonic()
        if now >= self._due or self._hurried:
            self._hurried = False
            self.shelf.refresh()
            self._due = now + max(PERIOD_S if self.live.count else IDLE_S, min(self.shelf.took_s / SHARE, LONGEST_S))
            self.look_at_runs()
        self.look_at_findings()

    def look_at_rows(self) -> None:
        grown = [name for name in self.live.wanted if self._has_grown(name)]
        if grown:
            self.live.say("rows", {"runs": grown}, grown)

    def _has_grown(self, name: str) -> bool:
        try:
            stamp = stamp_of(self.shelf.claims.source(self.shelf.listed(name)))
        except (NotFoundError, OSError):
            return False
        before, self._seen.stamps[name] = self._seen.stamps.get(name), stamp
        return before is not None and before != stamp

    def look_at_runs(self) -> None:
        """Tell which runs are new, gone or otherwise than they were."""
        now = {run.name: _row(run) for group in self.shelf.every() for run in group.runs}
        before, self._seen.rows = self._seen.rows, now
        changed = [name for name in now if before.get(name) != now[name]]
        gone = [name for name in before if name not in now]
        first = not self.version  # told though nothing is there: pages say until then that the folder is read
        self.version += bool(changed or gone or first)
        if changed or gone or first:
            news = {"changed": changed[:200], "gone": gone[:200], "runs": len(now), "version": self.version}
            self.live.say("runs", news)

    # ---- Findings

    def look_at_findings(self) -> None:
        if self._examining is not None:
            if self._examining.done():
                self._take(self._examining)
                self._examining = None
            return
        if self.version == self._asked_for or time.monotonic() < self._rest_until:
            return
        self._asked_for = self.version
        self._ask(self.shelf.every())

    def _ask(self, groups: list[SeedGroup]) -> None:
        runs = [run for group in groups for run in group.runs if not run.archived]
        self._began = self._began or not runs  # whatever comes into an empty folder is news
        if not runs or len(runs) > examining.MOST:
            many = f"{len(runs):,} runs are more than are examined together ({examining.MOST})"
            version = self.health.version + 1
            self.health = Health(None, "too many" if runs else "nothing", many if runs else "", version)
            self.live.say("findings", {"version": version, "new": []})
            return
        self._examining = self.desk.ask(examining.examined, str(self.shelf.root), sources(self.shelf, runs))
        self._examining.add_done_callback(lambda _: self._wake.set())

    def _take(self, answer: Future[Any]) -> None:
        self._rest_until = time.monotonic() + REST_S
        first, self._began = not self._began, True  # what was there before the server is no news
        try:
            self.health = Health(answer.result(), "done", "", self.health.version + 1)
        except Exception as error:  # pages without findings are better than none, and say so
            self.health = Health(self.health.document, "failed", blame.reason(error), self.health.version + 1)
            self._asked_for = -1
        new = [
            f for f in self.health.findings if self._announced.is_news(str(f["where"]), str(f["slug"]), f["severity"])
        ]
        messages = [{key: f[key] for key in ("slug", "severity", "where", "message")} for f in new]
        self.live.say("findings", {"version": self.health.version, "new": [] if first else messages[:20]})
        if self.webhook is not None and not first:
            self.webhook.send(messages)


def sources(shelf: Shelf, runs: list[ListedRun]) -> list[Source]:
    """What the desk is to read; a run that is gone by now is left out."""
    return shelf.claims.sources(runs)


def examinable(shelf: Shelf) -> list[Source]:
    """All runs of a folder, for questions about all of them; none where they are too many to be examined here."""
    runs = [run for group in shelf.every() for run in group.runs if not run.archived]
    return sources(shelf, runs) if len(runs) <= examining.MOST else []


def _row(run: ListedRun) -> tuple[Any, ...]:
    """What a change of which is worth a word; the size alone is not."""
    return (run.state, run.steps, run.outcome, run.archived, run.star, tuple(run.tags), run.note, run.seed)
