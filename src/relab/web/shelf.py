"""Which runs does the dashboard serve, and what do their logs hold? One folder: its index, and the runs read so far.

The index is asked by one thread and brought up to date by another, so that no page waits for a walk through the
folders. A run that was read is kept until its files change or others need the room.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from relab.base.errors import NotFoundError
from relab.formats.read import find
from relab.formats.read.hints import of_folder
from relab.formats.read.stamps import Stamp, stamp_of
from relab.record.history import History
from relab.runs import grouping, seeds
from relab.runs.grouping import Group, Run
from relab.runs.index import Index, Remarks
from relab.runs.listing import ListedRun, Query, select
from relab.runs.seeds import SeedGroup
from relab.web.claims import Claims
from relab.web.colours import Colours

T = TypeVar("T")
KEPT = 1 << 28  # bytes of runs that are kept in memory
SETTLES_S = 5.0  # a listing is asked for anew after so long: a run that says nothing becomes stale


@dataclass
class Kept:
    """A run in memory, and what its files were like when it was read."""

    stamp: Stamp
    run: Run
    size: int


class Shelf:
    """The runs at or below one folder."""

    def __init__(self, root: str | os.PathLike[str], most: int = KEPT):
        self.root, self.most = Path(os.path.abspath(root)), most
        self.claims = Claims(self.root)
        self.trash: list[Path] = []
        self.progress: tuple[int, int, str] | None = (0, 0, "")  # of a look that finds new runs; the first is to come
        self.took_s = 0.0  # by the last walk through the folders, of a core
        self._asking = ThreadPoolExecutor(1, "relab-index")
        self._index = self._asking.submit(Index, self.root).result()
        in_memory = self._asking.submit(_in_memory, self._index).result()
        self._walking = self._asking if in_memory else ThreadPoolExecutor(1, "relab-walk")
        self._walker = self._index if in_memory else self._walking.submit(Index, self.root).result()
        self._colours = Colours(self.root)
        self._looked = False  # whether the first look has ended
        self._grouped_s = 0.0  # that it took to put all runs into groups
        self._groups: tuple[int, float, list[SeedGroup]] | None = None
        self._kept: OrderedDict[tuple[Path, str], Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._reading: dict[tuple[Path, str], threading.Lock] = {}

    # ---- The index

    def refresh(self) -> int:
        """Read what is new or has changed -> how many runs were."""
        return self._walking.submit(self._refresh).result()

    def _refresh(self) -> int:
        def tell(done: int, total: int, name: str) -> None:
            self.progress = (done, total, name)

        began = time.thread_time()  # of this thread alone: on a busy machine the clock on the wall says nothing
        count = self._walker.refresh(tell)
        self.took_s = time.thread_time() - began
        self.progress, self.trash = None, self._walker.trash
        if not self._looked:
            self._looked, self._groups = True, None
        return count

    def _ask(self, question: Callable[[Index], T]) -> T:
        return self._asking.submit(question, self._index).result()

    def version(self) -> int:
        """Changes when the index has."""
        return self._ask(_version)

    def every(self) -> list[SeedGroup]:
        """All groups; the same list until something has changed."""
        return self._ask(self._every)

    def _every(self, index: Index) -> list[SeedGroup]:
        version, now = _version(index), time.monotonic()
        if self._groups is None or self._groups[0] != version or self._silent(now - self._groups[1]):
            whole = self._looked or bool(self._colours.places)
            groups = seeds.whole(index)  # which colours those have that came first is for a whole folder to say
            self._groups = (version, now, self._colours.fixed(groups) if whole else groups)
            self._grouped_s = time.monotonic() - now
        return self._groups[2]

    def _silent(self, age: float) -> bool:
        """Whether a run may have become stale since the groups were made: only one that trained then can."""
        assert self._groups is not None
        trained = any(run.state == "running" for group in self._groups[2] for run in group.runs)
        return age > max(SETTLES_S, 20 * self._grouped_s) and trained

    def groups(self, query: Query) -> list[SeedGroup]:
        return self._ask(lambda index: seeds.groups(index, query, self._every(index)))

    def remarks(self) -> Remarks:
        self._ask(lambda index: setattr(index, "trash", self.trash))
        return self._ask(lambda index: index.remarks())

    def group(self, key: str) -> SeedGroup:
        for group in self.every():
            if group.key == key:
                return group
        raise NotFoundError("there is no such group of runs here any more; it may have been archived or renamed")

    def listed(self, name: str) -> ListedRun:
        """The run of exactly this name, as the walk through the folder came upon it: no part of a path is taken from
        an address."""
        for group in self.every():
            for run in group.runs:
                if run.name == name:
                    return run
        raise NotFoundError("there is no such run here any more; it may have been archived, renamed or deleted")

    def group_of(self, name: str) -> SeedGroup:
        return next(group for group in self.every() if any(run.name == name for run in group.runs))

    def running(self) -> list[ListedRun]:
        return self._ask(lambda index: select(index, Query(state="running")).rows)

    # ---- Runs that are read

    def run(self, listed: ListedRun) -> Run:
        """A whole run; read anew where a file of it has changed."""
        key = (listed.folder, listed.key)
        with self._lock:
            lock = self._reading.setdefault(key, threading.Lock())
        with lock:
            source = self.claims.source(listed)
            stamp = stamp_of(source)
            with self._lock:
                kept = self._kept.get(key)
                if kept is not None and kept.stamp == stamp:
                    self._kept.move_to_end(key)
                    return kept.run
            run = grouping.of_loaded(find.Loaded(source, find.read(source, of_folder(self.root))), listed.name)
            self._keep(key, Kept(stamp, run, size_of(run.history)))
            return run

    def _keep(self, key: tuple[Path, str], new: Kept) -> None:
        with self._lock:
            self._kept[key] = new
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > self.most:
                old, _ = self._kept.popitem(last=False)
                self._reading.pop(old, None)

    @property
    def held(self) -> int:
        """Bytes of the runs in memory, about."""
        with self._lock:
            return sum(each.size for each in self._kept.values())

    def loaded(self, group: SeedGroup, runs: Sequence[ListedRun] | None = None) -> Group:
        """A group with its runs read, under the name that it has among all others."""
        members = [self.run(listed) for listed in (group.runs if runs is None else runs)]
        return Group(group.key, members, group.label)

    def close(self) -> None:
        for pool, index in ((self._asking, self._index), (self._walking, self._walker)):
            if index is not self._index or pool is self._asking:
                pool.submit(index.close).result()
        self._asking.shutdown()
        self._walking.shutdown()


def _version(index: Index) -> int:
    (version,) = index.db.execute("PRAGMA data_version").fetchone()
    return int(version) + index.db.total_changes


def _in_memory(index: Index) -> bool:
    return not index.db.execute("PRAGMA database_list").fetchone()[2]


def size_of(history: History) -> int:
    """Bytes that a run takes in memory, about: its columns, and about two hundred for each episode and row."""
    columns = sum(column.steps.nbytes + column.values.nbytes for column in history.columns.values())
    episodes = sum(len(row.get("episodes") or ()) for row in history.evals if isinstance(row.get("episodes"), list))
    return columns + 200 * (episodes + 5 * (len(history.events) + len(history.probes)))
