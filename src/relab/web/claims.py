"""From which files is a run read? A folder is asked once for all the runs in it, and again when it has changed.

A folder of four hundred logs takes half a second to recognise: asked for each run, one question took minutes.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from relab.base.errors import NotFoundError
from relab.formats.read import find
from relab.formats.read.source import Source
from relab.runs.listing import ListedRun

MOST = 1000  # folders that are remembered
Times = tuple[tuple[str, int], ...]  # of folders; another when a file came, went or was replaced


@dataclass(frozen=True)
class Claimed:
    """The runs of a folder by their path and key, and the times of the folders that their files lie in."""

    sources: dict[tuple[Path, str], Source]
    times: Times


class Claims:
    """Which runs lie in which folder; links are not followed, as in every walk."""

    def __init__(self, root: Path):
        self.root = root
        self._kept: OrderedDict[Path, Claimed] = OrderedDict()
        self._lock = threading.Lock()

    def source(self, run: ListedRun) -> Source:
        """NotFoundError where the run is gone."""
        folder = _folder(run)
        source = self._claimed(folder).sources.get((run.folder, run.key))
        if source is None:  # a store that got a run keeps its folder's time
            source = self._claimed(folder, anew=True).sources.get((run.folder, run.key))
        if source is None:
            raise NotFoundError(f"{run.name} is no longer there, or no longer a run")
        return replace(source, name=run.name)

    def sources(self, runs: Iterable[ListedRun]) -> list[Source]:
        """Of many runs; those that are gone by now are left out, and no folder is asked twice for them."""
        homes: dict[Path, list[ListedRun]] = {}
        for run in runs:
            homes.setdefault(_folder(run), []).append(run)
        there = {}
        for folder, some in homes.items():
            here = self._claimed(folder).sources
            if any((run.folder, run.key) not in here for run in some):
                here = self._claimed(folder, anew=True).sources
            there[folder] = here
        pairs = ((run, there[folder].get((run.folder, run.key))) for folder, some in homes.items() for run in some)
        return [replace(source, name=run.name) for run, source in pairs if source is not None]

    def _claimed(self, folder: Path, anew: bool = False) -> Claimed:
        with self._lock:
            kept = self._kept.get(folder)
        if kept is not None and not anew and kept.times == _times([path for path, _ in kept.times]):
            return kept
        before = _times([os.fspath(folder)])  # what comes while one looks is another time
        mine = find.claimed(find.look(folder), self.root)[0]
        others = {os.fspath(file.parent) for source in mine for file in source.files} - {os.fspath(folder)}
        made = Claimed({(s.path, s.key): s for s in mine}, before + _times(sorted(others)))
        with self._lock:
            self._kept[folder] = made
            self._kept.move_to_end(folder)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return made


def _folder(run: ListedRun) -> Path:
    return run.folder if run.folder.is_dir() else run.folder.parent


def _times(folders: Iterable[str]) -> Times:
    made = []
    for folder in folders:
        try:
            made.append((folder, os.stat(folder, follow_symlinks=False).st_mtime_ns))
        except OSError:
            made.append((folder, 0))
    return tuple(made)
