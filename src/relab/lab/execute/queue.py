"""What is to be run, what runs, and what became of the rest? A folder of files that any number of programs may share.

QUEUE/waiting, running, paused, done, failed, cancelled   an entry each (entry.py); which folder it lies in is its state
QUEUE/results/ID.TRY.json   how a try ended      QUEUE/codes/ID.TRY   its exit code, written by the process itself
QUEUE/asks/ID               a running entry is to be cancelled or paused      QUEUE/PAUSED   nothing new is started
QUEUE/logs/ID.log           what it printed      QUEUE/memory/   what kinds of entries took

No database, no locks: the only things relied on are that renaming a file happens once and that a file is written as a
whole. Both hold on network mounts. A rename that loses finds its file gone, and that is the answer.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relab.base import processes
from relab.base.documents import Document
from relab.base.enclosed import subfolder
from relab.base.errors import NotFoundError
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.config.base import require
from relab.lab.execute import entry as entries
from relab.lab.execute import keeper
from relab.lab.execute.entry import Entry, Name
from relab.record.run_folder import now

STATES = ("waiting", "running", "paused", "done", "failed", "cancelled")
FOLDERS = (*STATES, "results", "codes", "asks", "logs", "memory", "new")
ENDED = ("done", "failed", "cancelled")
ASKS = {"cancel": "cancelled", "pause": "paused"}  # what can be asked of a running entry, and where it goes then


@dataclass(frozen=True)
class Item:
    """An entry and its state."""

    name: Name
    state: str
    path: Path

    @property
    def id(self) -> str:
        return self.name.id


class Queue:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> Queue:
        for name in FOLDERS:
            subfolder(self.folder, name)
        return self

    def check(self) -> Queue:
        """It is there; for those who only look."""
        if not (self.folder / "waiting").is_dir():
            raise FileNotFoundError(f"there is no queue in {self.folder}; `relab queue add` makes one")
        return self

    # ---- What is there

    def names(self, state: str) -> list[Name]:
        """In the order in which they are to run; files that are no entries are passed over."""
        try:
            files = sorted(os.listdir(self.folder / state))
        except FileNotFoundError:
            return []
        return [name for file in files if (name := entries.parse(file)) is not None]

    def items(self, states: Iterable[str] = STATES) -> Iterator[Item]:
        for state in states:
            for name in self.names(state):
                yield Item(name, state, self.path(name, state))

    def path(self, name: Name, state: str) -> Path:
        return self.folder / state / name.file

    def read(self, item: Item) -> Entry:
        return entries.from_json(read_json(item.path.parent, item.path.name), item.path.name)

    def counts(self) -> dict[str, int]:
        counts = Counter(item.state for item in self.items())
        return {state: counts[state] for state in STATES}

    def find(self, word: str, states: Iterable[str] = STATES) -> Item:
        """The entry with this id, or whose id begins so; where it moves while one looks, the look is repeated."""
        for _ in range(3):
            matches = {item.id: item for item in self.items(STATES) if item.id.startswith(word.lower())}
            if matches:
                break
        if len(matches) != 1:
            what = f"{len(matches)} entries: {', '.join(sorted(matches)[:5])}" if matches else "no entry"
            raise NotFoundError(f"`{word}` means {what} of {self.folder}; `relab queue` lists them")
        (item,) = matches.values()
        allowed = tuple(states)
        require(item.state in allowed, f"{item.id[:8]} is {item.state}, but must be {' or '.join(allowed)} for that")
        return item

    # ---- Adding

    def add(self, entry: Entry, priority: int = 0, state: str = "waiting") -> Item:
        """Written elsewhere, then moved in as a whole: nobody sees half an entry."""
        self.make()
        name = entries.new_name(priority)
        draft = self.folder / "new" / name.file
        write_atomic(draft, encode(entry.to_json(), indent=True), rename_later=True)
        os.rename(draft, self.path(name, state))
        return Item(name, state, self.path(name, state))

    def keys(self) -> dict[str, str]:
        """Key -> id of what is asked for already and has not ended."""
        ids = {}
        for item in self.items(("waiting", "paused", "running")):
            try:
                key = self.read(item).key
            except (RecordError, OSError):  # it moved on a moment ago, or is a stranger's
                continue
            if key:
                ids[key] = item.id
        return ids

    # ---- Moving

    def move(self, item: Item, state: str, name: Name | None = None) -> Item | None:
        """One rename; None when somebody else was quicker."""
        name = name or item.name._replace(worker="")
        target = self.path(name, state)
        try:
            os.rename(item.path, target)
        except FileNotFoundError:
            return None
        return Item(name, state, target)

    def claim(self, name: Name, worker: str) -> Item | None:
        """Make a waiting entry ours; None when it is somebody else's by now."""
        ours = name._replace(worker=worker)
        item = self.move(Item(name, "waiting", self.path(name, "waiting")), "running", ours)
        if item is None and self.path(ours, "running").exists():  # a network mount may do it and say that it did not
            item = Item(ours, "running", self.path(ours, "running"))
        if item is not None:
            os.utime(item.path)  # a rename keeps the time at which the file was written
        return item

    def again(self, item: Item, state: str = "waiting") -> Item | None:
        """Back into the line, for another try at its old place."""
        return self.move(item, state, item.name._replace(tries=item.name.tries + 1, worker=""))

    # ---- Pausing, and asking of what runs

    @property
    def paused(self) -> bool:
        return (self.folder / "PAUSED").exists()

    def pause(self, yes: bool) -> None:
        if yes:
            write_atomic(self.folder / "PAUSED", encode({"since": now(), "by": processes.myself()}), several=True)
        else:
            (self.folder / "PAUSED").unlink(missing_ok=True)

    def ask(self, item: Item, what: str) -> None:
        write_atomic(self.folder / "asks" / item.id, encode({"ask": what, "at": now()}), several=True)

    def requests(self) -> dict[str, str]:
        """Id -> cancel or pause."""
        requests = {}
        for file in os.listdir(self.folder / "asks"):
            try:
                what = read_json(self.folder / "asks", file).get("ask")
            except (RecordError, OSError):
                continue
            if what in ASKS:
                requests[file] = str(what)
        return requests

    def answered(self, id_: str) -> None:
        (self.folder / "asks" / id_).unlink(missing_ok=True)

    # ---- How tries ended

    def write_result(self, name: Name, how: str, **facts: Any) -> None:
        """how: done | failed | killed | lost (its worker was killed and nobody knows) | stopped | cancelled | paused"""
        body = {"schema": 1, "how": how, "worker": name.worker, "at": now(), **facts}
        write_atomic(self.folder / "results" / f"{name.attempt}.json", encode(body), several=True)

    def result(self, name: Name, tries: int | None = None) -> Document:
        """Of this try, or of another; empty where it has not ended."""
        number = name.tries if tries is None else tries
        file = f"{name.id}.{number}.json"
        if not (self.folder / "results" / file).is_file():
            return {}
        return read_json(self.folder / "results", file)

    def deaths(self, name: Name) -> int:
        """Tries so far that were killed, this one included."""
        hows = [self.result(name, tries).get("how") for tries in range(name.tries + 1)]
        return sum(how in ("killed", "lost") for how in hows)

    def code(self, name: Name) -> int | None:
        """The exit code that a try's own process wrote down, whoever was there to see it.

        A program that was told to end and did so with 0 counts as killed: its work was not done.
        """
        kept = keeper.read(self.folder / "codes" / name.attempt)
        if kept is None:
            return None
        return -signal.SIGTERM if kept.stopped and kept.code == 0 else kept.code

    def log(self, id_: str) -> Path:
        return self.folder / "logs" / f"{id_}.log"

    def forget(self, item: Item) -> None:
        """An entry that has ended, with all that is kept of it but what it made elsewhere."""
        require(item.state in ENDED, f"{item.id[:8]} is {item.state}, and only what has ended can be cleared")
        for tries in range(item.name.tries + 1):
            (self.folder / "results" / f"{item.id}.{tries}.json").unlink(missing_ok=True)
            (self.folder / "codes" / f"{item.id}.{tries}").unlink(missing_ok=True)
        self.log(item.id).unlink(missing_ok=True)
        self.answered(item.id)
        item.path.unlink(missing_ok=True)

    # ---- Memory by kind

    def learned_mb(self, kind: str) -> float | None:
        """The most that an entry of this kind took; None before one has ended."""
        file = self._memory(kind)
        if not file.is_file():
            return None
        peak = read_json(file.parent, file.name).get("rss_mb")
        return float(peak) if isinstance(peak, (int, float)) else None

    def learn(self, kind: str, rss_mb: float) -> None:
        if rss_mb > (self.learned_mb(kind) or 0.0):
            write_atomic(self._memory(kind), encode({"kind": kind[:500], "rss_mb": rss_mb}), sync=False, several=True)

    def _memory(self, kind: str) -> Path:
        return self.folder / "memory" / f"{hashlib.sha256(kind.encode()).hexdigest()[:16]}.json"

    # ---- Time

    def clock(self) -> float:
        """What time it is on the file system: machines that share it may not agree about that."""
        file = self.folder / "new" / f"clock-{processes.myself()}"
        file.touch()
        try:
            return file.stat().st_mtime
        finally:
            file.unlink(missing_ok=True)

    def silent_s(self, item: Item) -> float:
        """Seconds since a running entry's heart beat."""
        try:
            return self.clock() - item.path.stat().st_mtime
        except FileNotFoundError:  # it has moved on
            return 0.0


def age_s(name: Name) -> float:
    return max(0.0, time.time() - name.came / 1e9)
